// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/leader_endpoint.h"

#include <chrono>

#include "clientlib/base/wait.h"

namespace grus {
namespace {

using kube::Json;

constexpr kube::Duration kLook = std::chrono::milliseconds(250), kAgain = std::chrono::seconds(10),
                         kRetry = std::chrono::seconds(5);
// From the beginning of its lead: gangs that an earlier leader began take their places first.
constexpr kube::Duration kSettle = std::chrono::seconds(3);

// Nothing is read of it but that it is there.
struct EndpointSlice : kube::Object {
  static const kube::Kind& ResourceKind() {
    static const kube::Kind kKind = kube::MakeKind<EndpointSlice>(
        {.group = "discovery.k8s.io", .version = "v1", .kind = "EndpointSlice", .plural = "endpointslices"});
    return kKind;
  }
};

bool IsIpv6(const std::string& address) { return address.find(':') != std::string::npos; }

}  // namespace

std::string SliceName(const std::string& service, const std::string& address) {
  return service + (IsIpv6(address) ? "-ipv6" : "-ipv4");
}

kube::Status LeaderEndpoint::Write(const std::stop_token& stop) {
  const std::string name = SliceName(options_.service.name, options_.address);
  const Json ready = Json::MakeObject({{"ready", true}});
  const Json slice = Json::MakeObject(
      {{"apiVersion", "discovery.k8s.io/v1"},
       {"kind", "EndpointSlice"},
       {"metadata",
        Json::MakeObject({{"name", name},
                          {"namespace", options_.service.ns},
                          {"labels", Json::MakeObject({{"kubernetes.io/service-name", options_.service.name},
                                                       {"endpointslice.kubernetes.io/managed-by", "grus-manager"}})}})},
       {"addressType", IsIpv6(options_.address) ? "IPv6" : "IPv4"},
       {"endpoints", Json::MakeArray({Json::MakeObject(
                         {{"addresses", Json::MakeArray({Json(options_.address)})}, {"conditions", ready}})})},
       {"ports",
        Json::MakeArray({Json::MakeObject({{"name", "extender"}, {"port", options_.port}, {"protocol", "TCP"}})})}});
  const auto written =
      client_.Apply(kube::KindOf<EndpointSlice>(), {options_.service.ns, name}, slice, {.force = true}, stop);
  return written ? kube::Status() : kube::Status(written.error());
}

void LeaderEndpoint::Run(const std::stop_token& stop) {
  bool has_led = false;
  kube::TimePoint next = kube::TimePoint::min();
  do {
    const bool leads = leads_();
    if (leads && !has_led) next = clock_.Now() + kSettle;
    if (leads && clock_.Now() >= next) {
      const kube::Status written = Write(stop);
      next = clock_.Now() + (written ? kAgain : kRetry);
      if (!written && !stop.stop_requested()) {
        log_.Warn("the Service of the extender does not lead here",
                  {{"service", options_.service.ToString()}, {"error", written.error().message()}});
      }
    }
    has_led = leads;
  } while (kube::WaitFor(clock_, kLook, stop));
}

}  // namespace grus
