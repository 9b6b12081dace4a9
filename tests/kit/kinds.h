// SPDX-License-Identifier: Apache-2.0
// Kinds that only tests and benches use: names and versions, without fields.
#pragma once

#include "clientlib/model/kind.h"

namespace kit {

// Without the one named "default" no pod can be created in a namespace.
struct ServiceAccount : kube::Object {
  static const kube::Kind& ResourceKind() {
    static const kube::Kind kKind =
        kube::MakeKind<ServiceAccount>({.version = "v1", .kind = "ServiceAccount", .plural = "serviceaccounts"});
    return kKind;
  }
};

// For tests that watch one being created and deleted.
struct CustomResourceDefinition : kube::Object {
  static const kube::Kind& ResourceKind() {
    static const kube::Kind kKind = kube::MakeKind<CustomResourceDefinition>({.group = "apiextensions.k8s.io",
                                                                              .version = "v1",
                                                                              .kind = "CustomResourceDefinition",
                                                                              .plural = "customresourcedefinitions",
                                                                              .is_namespaced = false});
    return kKind;
  }
};

}  // namespace kit
