// SPDX-License-Identifier: Apache-2.0
// The ResourceQuotas of each namespace. Tells who must look again when one admits more.
//
// Without the permission to read quotas there seem to be none: the API server still refuses what they do not admit.
// Thread-safe; callbacks run on the thread that brought the change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "controllers/policy/quota.h"

namespace grus {

class Quotas {
 public:
  // Registers a handler and an index: the informer must outlive this, and be stopped and joined before it goes.
  explicit Quotas(kube::Informer& quotas);

  // That namespace may admit pods that it refused before. REQUIRES: before the informer starts.
  void OnMore(std::function<void(const std::string& ns)> callback) { on_more_.push_back(std::move(callback)); }

  QuotaList Of(const std::string& ns) const;  // By name.

 private:
  const kube::Informer& quotas_;
  kube::Store::IndexId by_namespace_;
  std::vector<std::function<void(const std::string&)>> on_more_;
};

}  // namespace grus
