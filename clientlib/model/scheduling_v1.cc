// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/scheduling_v1.h"

namespace kube {

const Kind& PriorityClass::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&PriorityClass::value>("value", {.required = true}),
      Field<&PriorityClass::global_default>("globalDefault", {.omit_zero = true}),
  };
  static const Kind kKind = MakeKind<PriorityClass>({.group = "scheduling.k8s.io",
                                                     .version = "v1",
                                                     .kind = "PriorityClass",
                                                     .plural = "priorityclasses",
                                                     .is_namespaced = false,
                                                     .fields = kFields});
  return kKind;
}

}  // namespace kube
