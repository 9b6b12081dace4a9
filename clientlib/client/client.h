// SPDX-License-Identifier: Apache-2.0
// Typed verbs of the Kubernetes API over a Transport.
//
// Calls block until the answer has arrived, the deadline has passed or `stop` was requested. Errors carry the server's
// own message and code (api_status.h). Retried here (docs/runtime-rules.md, H1): answers with a Retry-After of at most
// one second, and GETs whose connection broke; longer waits are left to the work queue, so that no reconcile thread
// sleeps. Objects in memory are projections (model/kind.h): they are never sent back whole. Writes are create,
// server-side apply, patch and delete. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/auth/token_source.h"
#include "clientlib/base/log.h"
#include "clientlib/client/pod_log.h"
#include "clientlib/client/postponed_requests.h"
#include "clientlib/http/transport.h"
#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"

namespace kube {

// Observes each finished request; called on the caller's thread. Must be quick and thread-safe.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  // `code` is the HTTP status, 0 if no answer came.
  virtual void OnRequest(std::string_view verb, const Kind& kind, int code, Duration took) = 0;
};

// Called right before each try of a write. Must be quick and thread-safe.
class WriteGate {
 public:
  virtual ~WriteGate() = default;
  // An error refuses the write, and is returned to the caller.
  virtual Status MayWrite(const Kind& kind) const = 0;
};

// The `{}` below allow designated initialisers that name only some fields.
struct ClientOptions {
  std::string user_agent = "grus";
  std::string field_manager = "grus";
  std::vector<std::pair<std::string, std::string>> headers{};  // Impersonation.
  Duration timeout = std::chrono::seconds(30);
  HttpPool pool = HttpPool::kRequest;
};

struct ListOptions {
  std::string label_selector{}, field_selector{}, resource_version{}, continue_token{};
  int limit = 0;
};

struct ObjectList {
  std::vector<std::shared_ptr<Object>> items;
  std::string resource_version, continue_token;
};

struct WriteOptions {
  std::string subresource{};    // "status", "scale" or empty.
  std::string field_manager{};  // Empty: the client's.
  bool force = false;           // Apply only: take fields from other managers.
  bool dry_run = false;
  bool metadata_only = false;         // The answer has only the object's metadata: less to send and to decode.
  std::optional<Duration> timeout{};  // Of a create; no longer than the client's.
};

enum class PatchType { kJson, kMerge, kStrategicMerge };

struct DeleteOptions {
  std::string uid{};               // Precondition; empty: none.
  std::string resource_version{};  // Precondition; empty: none.
  std::optional<std::int64_t> grace_period_seconds{};
  std::string propagation = "Background";  // Background | Foreground | Orphan
};

struct WatchOptions {
  std::string label_selector{}, field_selector{}, resource_version{};
  bool send_initial_events = false;  // Watch-list (KEP-3157); needs resource_version "" or a version.
  Duration timeout = std::chrono::minutes(8);
};

class Client {
 public:
  using ObjectPtr = std::shared_ptr<Object>;

  // `tokens` and `observer` may be null. All must outlive the client.
  Client(Transport& transport, TokenSource* tokens, const Clock& clock, ClientOptions options = {},
         RequestObserver* observer = nullptr);

  // Null: none. `gate` must outlive the client. REQUIRES: before the first request.
  void SetWriteGate(const WriteGate* gate) { gate_ = gate; }

  Result<ObjectPtr> Get(const Kind& kind, const ObjectKey& key, std::stop_token stop = {});
  Result<ObjectList> List(const Kind& kind, std::string_view ns, const ListOptions& options = {},
                          std::stop_token stop = {});
  Result<ObjectPtr> Create(const Kind& kind, std::string_view ns, const Json& object, const WriteOptions& options = {},
                           std::stop_token stop = {});
  // Server-side apply: removes fields that we own and `object` leaves out.
  Result<ObjectPtr> Apply(const Kind& kind, const ObjectKey& key, const Json& object, const WriteOptions& options = {},
                          std::stop_token stop = {});
  Result<ObjectPtr> Patch(const Kind& kind, const ObjectKey& key, PatchType type, const Json& patch,
                          const WriteOptions& options = {}, std::stop_token stop = {});
  // Success if the object is already gone. kConflict: a precondition does not hold.
  Status Delete(const Kind& kind, const ObjectKey& key, const DeleteOptions& options = {}, std::stop_token stop = {});
  // Opens a watch. The stream's lines are watch events; see cache/reflector.h for the protocol.
  Result<std::unique_ptr<ByteStream>> Watch(const Kind& kind, std::string_view ns, const WatchOptions& options,
                                            std::stop_token stop = {});
  // Opens the log of a container. Never retried: only the reader can tell which bytes of a second stream are repeated.
  // Errors name the pod; see also IsWaitingToStart(). kTimeout: no byte came in time.
  Result<std::unique_ptr<ByteStream>> PodLog(const ObjectKey& pod, const PodLogOptions& options,
                                             std::stop_token stop = {});
  // Binds a pod that waits to the node `node`, and adds these annotations to it, in one write. kConflict: it is bound
  // already, or another pod has that name; kNotFound: it is gone. After an error without an answer it may be bound.
  Status Bind(const ObjectKey& pod, std::string_view uid, std::string_view node, const Json& annotations,
              std::stop_token stop = {});
  // GETs any path (discovery, /version) and returns the body.
  Result<std::string> GetRaw(const std::string& path, std::stop_token stop = {});

  template <typename T>
  Result<std::shared_ptr<T>> Get(const ObjectKey& key, std::stop_token stop = {}) {
    Result<ObjectPtr> got = Get(KindOf<T>(), key, std::move(stop));
    if (!got) return std::move(got).error();
    return std::static_pointer_cast<T>(*std::move(got));
  }

 private:
  Result<HttpResponse> Send(std::string_view verb, const Kind& kind, HttpRequest request, std::stop_token stop);
  Result<ObjectPtr> SendForObject(std::string_view verb, const Kind& kind, HttpRequest request, std::stop_token stop);
  Result<StreamResponse> Open(std::string_view verb, const Kind& kind, HttpRequest request, std::stop_token stop);
  Status Authorize(HttpRequest& request);

  Transport& transport_;
  TokenSource* tokens_;
  const Clock& clock_;
  ClientOptions options_;
  RequestObserver* observer_;
  const WriteGate* gate_ = nullptr;
  PostponedRequests postponed_{clock_};
};

}  // namespace kube
