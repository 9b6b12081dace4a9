// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/events_v1.h"

namespace kube {

std::span<const FieldInfo> EventSeries::Fields() {
  using T = EventSeries;
  static constexpr FieldInfo kFields[] = {
      Field<&T::count>("count", {.required = true}),
      Field<&T::last_observed_time>("lastObservedTime", {.required = true}),
  };
  return kFields;
}

const Kind& Event::ResourceKind() {
  using T = Event;
  static constexpr FieldInfo kFields[] = {
      Field<&T::event_time>("eventTime"),
      Field<&T::series>("series"),
      Field<&T::reporting_controller>("reportingController"),
      Field<&T::reporting_instance>("reportingInstance"),
      Field<&T::action>("action"),
      Field<&T::reason>("reason"),
      Field<&T::regarding>("regarding"),
      Field<&T::related>("related"),
      Field<&T::note>("note"),
      Field<&T::type>("type"),
      Field<&T::deprecated_last_timestamp>("deprecatedLastTimestamp"),
  };
  static const Kind kKind = MakeKind<Event>(
      {.group = "events.k8s.io", .version = "v1", .kind = "Event", .plural = "events", .fields = kFields});
  return kKind;
}

}  // namespace kube
