// SPDX-License-Identifier: Apache-2.0
// A Kubernetes API server in this process, for fault schedules and fast tests.
//
// It behaves as kube-apiserver does where a client can tell (the tests in tests/contract run against both; a difference
// is a bug here): resource versions, list and watch with bookmarks and watch-list, pages, 410 after a compaction,
// optimistic conflicts, JSON, merge and strategic merge patches, the status and scale subresources, finalizers,
// graceful deletion of pods, namespaces that end, CRDs with pruning, defaults and validation, the logs of pods,
// admission by Pod Security, ResourceQuota, LimitRange and RuntimeClass. It leaves to the models of a cluster's
// controllers (clientlib/testing/cluster): garbage collection, emptying a namespace, and everything that controllers,
// the scheduler and the kubelet do. It lacks: authentication, authorisation, server-side apply, CEL rules, admission
// webhooks, conversion between versions of a CRD, most defaults of built-in kinds.
//
// As a Transport it answers at once; streams wait on `clock`. FakeApiSocket (fake_api_socket.h) serves it over a
// loopback port. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/model/json.h"
#include "clientlib/model/meta.h"

namespace kube::testing {

struct FakeApiServerOptions {
  std::uint64_t seed = 1;  // UIDs and generated names are derived from it.
  bool has_watch_list = true;
  Duration bookmark_period = std::chrono::minutes(1);
  std::size_t events_kept = 100'000;  // Older ones are compacted: a watch from before gets 410.
};

// A change; `before` is null for a new object, `after` for a deleted one.
struct ServerChange {
  std::string resource;  // "pods", "statefulsets.apps": plural and group, as in kubectl.
  std::shared_ptr<const Json> before, after;
  std::uint64_t revision = 0;
};

class FakeApiServer final : public Transport {
 public:
  using ObjectPtr = std::shared_ptr<const Json>;

  // Begins with the namespaces default and kube-system.
  explicit FakeApiServer(const Clock& clock, FakeApiServerOptions options = {});
  ~FakeApiServer() override;

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override;
  Result<StreamResponse> Open(const HttpRequest& request, std::stop_token stop) override;

  // For models of controllers and for tests: the same path as over HTTP (admission, conflicts, events), without text.
  // `resource` as in ServerChange. Errors as a client would see them.
  ObjectPtr Get(std::string_view resource, const ObjectKey& key) const;                    // Null if there is none.
  std::vector<ObjectPtr> List(std::string_view resource, std::string_view ns = {}) const;  // By key.
  Result<ObjectPtr> Create(std::string_view resource, Json object);
  // Replaces spec and metadata, or the status. A metadata.resourceVersion in `object` must be the current one.
  Result<ObjectPtr> Update(std::string_view resource, Json object, std::string_view subresource = {});
  // `options`: a DeleteOptions object, or null.
  Status Delete(std::string_view resource, const ObjectKey& key, const Json& options = {});
  // Binds a pod, as POST pods/NAME/binding does.
  Status Bind(const ObjectKey& pod, std::string_view node);

  // Appends to a container's log at time `at`: whole lines, or a part of one, which the next call continues. REQUIRES:
  // `at` is not before that of the last call. No effect if there is no such pod. For its followers a log ends with its
  // container; the container's next start has a new one.
  void AppendPodLog(const ObjectKey& pod, std::string_view container, WallTime at, std::string_view text);
  // Keeps only the last `lines`, as a node does with a long log.
  void RotatePodLog(const ObjectKey& pod, std::string_view container, std::size_t lines);

  // `observer` is called after each change, in the order of revisions, with the server locked: it must not call the
  // server. REQUIRES: before the first request.
  void AddObserver(std::function<void(const ServerChange&)> observer);

  std::uint64_t revision() const;
  void Compact();       // Forgets all events so far: watches from before get 410 (the open ones go on).
  void BreakStreams();  // All open streams fail with kUnavailable.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube::testing
