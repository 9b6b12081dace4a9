// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/client.h"

#include <utility>

#include "clientlib/base/wait.h"
#include "clientlib/client/api_status.h"
#include "clientlib/client/resource_path.h"
#include "clientlib/http/retry.h"
#include "clientlib/http/url.h"
#include "clientlib/model/pod.h"

namespace kube {
namespace {

constexpr Duration kLongestWait = std::chrono::seconds(1);  // Longer waits are left to the work queue.
constexpr Duration kReconnectWait = std::chrono::milliseconds(50);
constexpr Duration kBindTimeout = std::chrono::seconds(3);  // Who asks for it, a scheduler, waits for 5 s.
constexpr std::string_view kDryRunVerb = "dry-run";  // For the observer: it stores nothing, so it is no "create".

// A query that leaves out empty values.
class Query {
 public:
  explicit Query(std::string path) : builder_(std::move(path)) {}
  Query& Add(std::string_view name, std::string_view value) {
    if (!value.empty()) builder_.Add(name, value);
    return *this;
  }
  std::string Target() { return std::move(builder_).target(); }

 private:
  QueryBuilder builder_;
};

std::string WriteTarget(std::string path, const WriteOptions& options, std::string_view default_manager) {
  return Query(std::move(path))
      .Add("fieldManager", options.field_manager.empty() ? default_manager : options.field_manager)
      .Add("force", options.force ? "true" : "")
      .Add("dryRun", options.dry_run ? "All" : "")
      .Target();
}

void AcceptAnswer(HttpRequest& request, const WriteOptions& options) {
  if (!options.metadata_only) return;
  request.headers.emplace_back("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
}

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kJson: return "application/json-patch+json";
    case PatchType::kMerge: return "application/merge-patch+json";
    case PatchType::kStrategicMerge: return "application/strategic-merge-patch+json";
  }
  return "";
}

}  // namespace

Client::Client(Transport& transport, TokenSource* tokens, const Clock& clock, ClientOptions options,
               RequestObserver* observer)
    : transport_(transport), tokens_(tokens), clock_(clock), options_(std::move(options)), observer_(observer) {}

Status Client::Authorize(HttpRequest& request) {
  request.headers.emplace_back("User-Agent", options_.user_agent);
  for (const auto& header : options_.headers) request.headers.push_back(header);
  if (tokens_ == nullptr) return {};
  Result<std::string> value = tokens_->AuthorizationHeader();
  if (!value) return std::move(value).error();
  if (!value->empty()) request.headers.emplace_back("Authorization", *std::move(value));
  return {};
}

Result<HttpResponse> Client::Send(std::string_view verb, const Kind& kind, HttpRequest request, std::stop_token stop) {
  request.pool = options_.pool;
  request.timeout = std::min(request.timeout, options_.timeout);
  const std::size_t plain_headers = request.headers.size();
  const std::string what = request.method + " " + request.target.substr(0, request.target.find('?'));
  // A create names no object: what is said of one is not said of all. Nor do streams count: each has a wait of its own.
  const bool is_of_one = request.method != "POST";
  if (std::optional<Error> not_yet = is_of_one ? postponed_.WhyNot(what) : std::nullopt) return *std::move(not_yet);
  bool has_renewed_token = false;
  std::string earlier;  // The error of the previous try.
  for (int tries = 1;; ++tries) {
    request.headers.resize(plain_headers);
    if (Status authorized = Authorize(request); !authorized) return std::move(authorized).error();
    if (gate_ && request.method != "GET") {
      if (Status open = gate_->MayWrite(kind); !open) return std::move(open).error();
    }

    const TimePoint sent = clock_.Now();
    Result<HttpResponse> response = transport_.Send(request, stop);
    if (observer_) observer_->OnRequest(verb, kind, response ? response->status : 0, clock_.Now() - sent);
    if (response && response->status >= 200 && response->status < 300) return response;
    if (response && response->status == 401 && tokens_ && !std::exchange(has_renewed_token, true)) {
      tokens_->Refused(sent);
      continue;
    }

    const auto wait = RetryDelay(request.method, response, tries, kReconnectWait, clock_.WallNow());
    Error error = response ? ErrorFromResponse(*response, clock_.WallNow()) : std::move(response).error();
    if (is_of_one) postponed_.Note(what, error);
    if (!wait || *wait > kLongestWait) {
      if (earlier.empty() || earlier == error.message()) return error;
      return std::move(error).with("try " + std::to_string(tries) + " (before: " + earlier + ")");
    }
    earlier = error.message();
    if (!WaitFor(clock_, *wait, stop)) return Error(ErrorCode::kCancelled, error.message()).with("stopped");
  }
}

Result<Client::ObjectPtr> Client::SendForObject(std::string_view verb, const Kind& kind, HttpRequest request,
                                                std::stop_token stop) {
  Result<HttpResponse> response = Send(verb, kind, std::move(request), std::move(stop));
  if (!response) return std::move(response).error();
  Result<ObjectPtr> object = DecodeObject(kind, response->body);
  if (!object) return std::move(object).error().with("answer of the server");
  return object;
}

Result<Client::ObjectPtr> Client::Get(const Kind& kind, const ObjectKey& key, std::stop_token stop) {
  HttpRequest request;
  request.target = ObjectPath(kind, key);
  return SendForObject("get", kind, std::move(request), std::move(stop));
}

std::string ListPath(const Kind& kind, std::string_view ns, const ListOptions& options) {
  return Query(CollectionPath(kind, ns))
      .Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector)
      .Add("resourceVersion", options.resource_version)
      .Add("continue", options.continue_token)
      .Add("limit", options.limit > 0 ? std::to_string(options.limit) : "")
      .Target();
}

Result<ObjectList> Client::List(const Kind& kind, std::string_view ns, const ListOptions& options,
                                std::stop_token stop) {
  HttpRequest request;
  request.target = ListPath(kind, ns, options);
  Result<HttpResponse> response = Send("list", kind, std::move(request), std::move(stop));
  if (!response) return std::move(response).error();
  Result<DecodedList> list = DecodeObjectList(kind, response->body);
  if (!list) return std::move(list).error().with("answer of the server");
  return ObjectList{std::move(list->items), std::move(list->resource_version), std::move(list->continue_token)};
}

Result<Client::ObjectPtr> Client::Create(const Kind& kind, std::string_view ns, const Json& object,
                                         const WriteOptions& options, std::stop_token stop) {
  HttpRequest request;
  request.method = "POST";
  request.target = WriteTarget(CollectionPath(kind, ns), options, options_.field_manager);
  AcceptAnswer(request, options);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = ToText(object);
  request.timeout = options.timeout.value_or(options_.timeout);
  return SendForObject(options.dry_run ? kDryRunVerb : "create", kind, std::move(request), std::move(stop));
}

Status Client::Bind(const ObjectKey& pod, std::string_view uid, std::string_view node, const Json& annotations,
                    std::stop_token stop) {
  HttpRequest request;
  request.method = "POST";
  request.target = ObjectPath(KindOf<Pod>(), pod, "binding");
  request.headers.emplace_back("Accept", "application/json");
  request.headers.emplace_back("Content-Type", "application/json");
  request.timeout = kBindTimeout;
  request.body = ToText(Json::MakeObject(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata",
        Json::MakeObject({{"name", pod.name}, {"namespace", pod.ns}, {"uid", uid}, {"annotations", annotations}})},
       {"target", Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}})}}));
  Result<HttpResponse> response = Send("bind", KindOf<Pod>(), std::move(request), std::move(stop));
  if (!response) return std::move(response).error();
  return {};
}

Result<Client::ObjectPtr> Client::Apply(const Kind& kind, const ObjectKey& key, const Json& object,
                                        const WriteOptions& options, std::stop_token stop) {
  HttpRequest request;
  request.method = "PATCH";
  request.target = WriteTarget(ObjectPath(kind, key, options.subresource), options, options_.field_manager);
  AcceptAnswer(request, options);
  // JSON is YAML: each server with server-side apply accepts it under this type.
  request.headers.emplace_back("Content-Type", "application/apply-patch+yaml");
  request.body = ToText(object);
  return SendForObject("apply", kind, std::move(request), std::move(stop));
}

Result<Client::ObjectPtr> Client::Patch(const Kind& kind, const ObjectKey& key, PatchType type, const Json& patch,
                                        const WriteOptions& options, std::stop_token stop) {
  HttpRequest request;
  request.method = "PATCH";
  request.target = WriteTarget(ObjectPath(kind, key, options.subresource), options, options_.field_manager);
  AcceptAnswer(request, options);
  request.headers.emplace_back("Content-Type", ContentType(type));
  request.body = ToText(patch);
  return SendForObject("patch", kind, std::move(request), std::move(stop));
}

Status Client::Delete(const Kind& kind, const ObjectKey& key, const DeleteOptions& options, std::stop_token stop) {
  Json body = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
  body["propagationPolicy"] = options.propagation;
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  HttpRequest request;
  request.method = "DELETE";
  request.target = ObjectPath(kind, key);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = ToText(body);
  Result<HttpResponse> response = Send("delete", kind, std::move(request), std::move(stop));
  if (!response && response.error().code() != ErrorCode::kNotFound) return std::move(response).error();
  return {};
}

Result<std::unique_ptr<ByteStream>> Client::Watch(const Kind& kind, std::string_view ns, const WatchOptions& options,
                                                  std::stop_token stop) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count();
  Query query(CollectionPath(kind, ns));
  query.Add("watch", "1").Add("allowWatchBookmarks", "true").Add("timeoutSeconds", std::to_string(seconds));
  query.Add("labelSelector", options.label_selector).Add("fieldSelector", options.field_selector);
  query.Add("resourceVersion", options.resource_version);
  if (options.send_initial_events) {
    query.Add("sendInitialEvents", "true").Add("resourceVersionMatch", "NotOlderThan");
  }
  HttpRequest request;
  request.target = query.Target();
  request.timeout = options_.timeout;
  Result<StreamResponse> response = Open("watch", kind, std::move(request), std::move(stop));
  if (!response) return std::move(response).error();
  if (!response->stream) return ErrorFromResponse(response->head, clock_.WallNow());
  return std::move(response->stream);
}

Result<std::unique_ptr<ByteStream>> Client::PodLog(const ObjectKey& pod, const PodLogOptions& options,
                                                   std::stop_token stop) {
  const auto number = [](std::optional<std::int64_t> n) { return n ? std::to_string(*n) : std::string(); };
  HttpRequest request;
  request.target = Query(ObjectPath(KindOf<Pod>(), pod, "log"))
                       .Add("container", options.container)
                       .Add("follow", options.follow ? "true" : "")
                       .Add("timestamps", options.timestamps ? "true" : "")
                       .Add("sinceTime", options.since ? ToText(*options.since) : "")
                       .Add("tailLines", number(options.tail_lines))
                       .Add("limitBytes", number(options.limit_bytes))
                       .Target();
  request.timeout = options.timeout;
  Result<StreamResponse> response = Open("log", KindOf<Pod>(), std::move(request), std::move(stop));
  if (response && response->stream) return std::move(response->stream);

  Error error = !response ? std::move(response).error()
                : response->head.status == 204
                    ? Error(ErrorCode::kUnavailable, "the pod has no node yet").with_http(204, "")
                    : ErrorFromResponse(response->head, clock_.WallNow());
  return std::move(error).with("log of pod " + pod.ToString());
}

Result<StreamResponse> Client::Open(std::string_view verb, const Kind& kind, HttpRequest request,
                                    std::stop_token stop) {
  request.pool = HttpPool::kWatch;
  if (Status authorized = Authorize(request); !authorized) return std::move(authorized).error();
  const TimePoint sent = clock_.Now();
  Result<StreamResponse> response = transport_.Open(request, std::move(stop));
  const int code = response ? response->head.status : 0;
  if (observer_) observer_->OnRequest(verb, kind, code, clock_.Now() - sent);
  if (code == 401 && tokens_) tokens_->Refused(sent);
  return response;
}

Result<std::string> Client::GetRaw(const std::string& path, std::stop_token stop) {
  static constexpr Kind kRaw{};
  HttpRequest request;
  request.target = path;
  Result<HttpResponse> response = Send("get", kRaw, std::move(request), std::move(stop));
  if (!response) return std::move(response).error();
  return std::move(response->body);
}

}  // namespace kube
