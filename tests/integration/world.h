// SPDX-License-Identifier: Apache-2.0
// The cluster as a test sees it: a client, caches of everything a job touches, and every change in its order.
//
// Await() looks again at each change and never polls. Thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/client/client.h"
#include "clientlib/http/curl_transport.h"
#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/events_v1.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/pod_group.h"
#include "crds/types/trial_job.h"
#include "tests/kit/kinds.h"
#include "tests/kit/must.h"
#include "tests/kit/observer.h"

namespace grus::testing {

using kit::CustomResourceDefinition;
using kit::ServiceAccount;

// One change of one object, as the caches were told of it.
struct Step {
  const kube::Kind* kind;
  kube::ConstObject before, after;  // As kube::Change.
};

// "Pod train-workers-1 at version 1234", and what differs, as a merge patch.
std::string Describe(const Step& step);

using kit::FromText;
using kit::Must;

class World {
 public:
  static constexpr std::chrono::seconds kLimit{60};  // Far longer than anything here takes.

  // The cluster of $KUBECONFIG. Throws if it cannot be reached.
  World();

  kube::Client& client() { return client_; }
  const kube::ClientConfig& config() const { return config_; }
  // For what kube::Client has no verb for: apply CRDs, the scale subresource.
  kube::HttpResponse Send(const std::string& method, const std::string& path, const std::string& content_type = {},
                          const std::string& body = {}, const std::string& accept = "application/json");
  // The cells of an object that `kubectl get` shows, by the names of their columns; empty: the cell is.
  std::map<std::string, std::string> Columns(const std::string& path);

  template <typename T>
  std::shared_ptr<const T> Get(const std::string& ns, const std::string& name) const {
    return observer_.Of(kube::KindOf<T>()).template Get<T>({ns, name});
  }
  // By name; "w-2" before "w-10".
  template <typename T>
  std::vector<std::shared_ptr<const T>> List(const std::string& ns) const {
    auto list = observer_.Of(kube::KindOf<T>()).template ByIndex<T>(0, ns);
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      const std::string &x = a->metadata.name, &y = b->metadata.name;
      return x.size() != y.size() ? x.size() < y.size() : x < y;
    });
    return list;
  }

  // Writes of a test, each seen by the caches when they return: what is awaited next is not what was before.
  void Create(const kube::Kind& kind, const std::string& ns, const kube::Json& object);
  void Patch(const kube::Kind& kind, const kube::ObjectKey& key, kube::PatchType type, const kube::Json& patch,
             const std::string& subresource = {});
  void Delete(const kube::Kind& kind, const kube::ObjectKey& key);

  // What happened in a namespace, in order for each kind.
  std::vector<Step> History(const std::string& ns) const;
  // Waits for `count` more changes in `ns`; false at the limit.
  bool AwaitChanges(const std::string& ns, std::size_t count, kube::Duration limit = kLimit);

  // True as soon as `holds()` is; false at the limit. `holds` reads the caches and takes no lock.
  bool Await(const std::function<bool()>& holds, kube::Duration limit = kLimit);
  // True if `holds()` stays true for so long, looked at after every change.
  bool Stays(const std::function<bool()>& holds, kube::Duration duration);

  // Everything of a namespace that a failed test's reader needs.
  std::string Describe(const std::string& ns) const;

 private:
  void AwaitSeen(const kube::Kind& kind, const kube::Object& written);

  kube::SystemClock clock_;
  kube::Log log_;
  kube::ClientConfig config_;
  std::unique_ptr<kube::CurlTransport> transport_;
  kube::Client client_;

  mutable std::mutex mutex_;  // Guards steps_.
  std::vector<Step> steps_;

  kit::Observer observer_;  // Last: it tells of changes until it is gone.
};

}  // namespace grus::testing
