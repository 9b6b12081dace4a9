// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/fake_api_server.h"

#include <utility>

#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/router.h"

namespace kube::testing {

struct FakeApiServer::Impl {
  Impl(const Clock& clock, const FakeApiServerOptions& options)
      : storage(clock, options), router(storage, clock), lock(storage.shared()->mutex) {}

  // Null: nothing is served under that name.
  Table* TableOf(std::string_view resource) { return storage.Find(resource); }

  Storage storage;
  Router router;
  std::mutex& lock;  // Guards all of this.
};

namespace {

ApiError NoSuchResource(std::string_view resource) {
  ApiError error = UnknownResource();
  error.message += Concat({": ", resource});
  return error;
}

}  // namespace

FakeApiServer::FakeApiServer(const Clock& clock, FakeApiServerOptions options)
    : impl_(std::make_unique<Impl>(clock, options)) {
  for (const auto& info : BuiltinResources()) impl_->storage.Add(info);
  for (const char* const name : {"default", "kube-system"}) {
    const Result<ObjectPtr> made =
        Create("namespaces", Json::MakeObject({{"metadata", Json::MakeObject({{"name", name}})}}));
    (void)made;  // Cannot fail: the names are valid and not taken yet.
  }
}

FakeApiServer::~FakeApiServer() { BreakStreams(); }

Result<HttpResponse> FakeApiServer::Send(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
  std::lock_guard lock(impl_->lock);
  return impl_->router.Answer(request).head;
}

Result<StreamResponse> FakeApiServer::Open(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
  std::lock_guard lock(impl_->lock);
  StreamResponse response = impl_->router.Answer(request);
  if (!response.stream && response.head.status == 200) {
    response.stream = MakeStream(std::exchange(response.head.body, {}));
  }
  return response;
}

FakeApiServer::ObjectPtr FakeApiServer::Get(std::string_view resource, const ObjectKey& key) const {
  std::lock_guard lock(impl_->lock);
  const Table* const table = impl_->TableOf(resource);
  return table ? JsonOf(impl_->storage.Get(*table, key)) : nullptr;
}

std::vector<FakeApiServer::ObjectPtr> FakeApiServer::List(std::string_view resource, std::string_view ns) const {
  std::lock_guard lock(impl_->lock);
  std::vector<ObjectPtr> objects;
  const Table* const table = impl_->TableOf(resource);
  if (!table) return objects;
  for (auto at = table->objects.lower_bound({std::string(ns), ""}); at != table->objects.end(); ++at) {
    if (!ns.empty() && at->first.ns != ns) break;
    objects.push_back(JsonOf(at->second));
  }
  return objects;
}

Result<FakeApiServer::ObjectPtr> FakeApiServer::Create(std::string_view resource, Json object) {
  std::lock_guard lock(impl_->lock);
  Table* const table = impl_->TableOf(resource);
  if (!table) return NoSuchResource(resource).ToError();
  SetIfMissing(object, "kind", table->info->kind);
  SetIfMissing(object, "apiVersion", table->info->ApiVersion());
  const std::string ns(TextAt(object, {"metadata", "namespace"}));
  Outcome<Written> written = impl_->router.writer().Create(*table, ns, std::move(object), {});
  if (!written) return written.error().ToError();
  return JsonOf(written->revision);
}

Result<FakeApiServer::ObjectPtr> FakeApiServer::Update(std::string_view resource, Json object,
                                                       std::string_view subresource) {
  std::lock_guard lock(impl_->lock);
  Table* const table = impl_->TableOf(resource);
  if (!table) return NoSuchResource(resource).ToError();
  const ObjectKey key = KeyOf(object);
  const WriteOptions options{.subresource = std::string(subresource)};
  Writer& writer = impl_->router.writer();
  if (subresource == "scale") {
    Outcome<Json> scaled = writer.UpdateScale(*table, key, object, options);
    if (!scaled) return scaled.error().ToError();
    return std::make_shared<const Json>(std::move(*scaled));
  }
  Outcome<Written> written = subresource == "finalize" ? writer.Finalize(*table, key, object, options)
                                                       : writer.Update(*table, key, std::move(object), options);
  if (!written) return written.error().ToError();
  return JsonOf(written->revision);
}

Status FakeApiServer::Delete(std::string_view resource, const ObjectKey& key, const Json& options) {
  std::lock_guard lock(impl_->lock);
  Table* const table = impl_->TableOf(resource);
  if (!table) return NoSuchResource(resource).ToError();
  Outcome<Deleted> deleted = impl_->router.writer().Delete(*table, key, options, false);
  if (!deleted) return deleted.error().ToError();
  return {};
}

Status FakeApiServer::Bind(const ObjectKey& pod, std::string_view node) {
  std::lock_guard lock(impl_->lock);
  const Json binding = Json::MakeObject({{"target", Json::MakeObject({{"kind", "Node"}, {"name", node}})}});
  Check bound = impl_->router.writer().Bind(pod, binding, {});
  if (!bound) return bound.error().ToError();
  return {};
}

void FakeApiServer::AppendPodLog(const ObjectKey& pod, std::string_view container, WallTime at, std::string_view text) {
  std::lock_guard lock(impl_->lock);
  impl_->router.logs().Append(pod, container, at, text);
}

void FakeApiServer::RotatePodLog(const ObjectKey& pod, std::string_view container, std::size_t lines) {
  std::lock_guard lock(impl_->lock);
  impl_->router.logs().Rotate(pod, container, lines);
}

void FakeApiServer::AddObserver(std::function<void(const ServerChange&)> observer) {
  std::lock_guard lock(impl_->lock);
  impl_->storage.AddObserver(std::move(observer));
}

std::uint64_t FakeApiServer::revision() const {
  std::lock_guard lock(impl_->lock);
  return impl_->storage.revision();
}

void FakeApiServer::Compact() {
  std::lock_guard lock(impl_->lock);
  impl_->storage.Compact();
}

void FakeApiServer::BreakStreams() {
  std::lock_guard lock(impl_->lock);
  for (const auto& [id, table] : impl_->storage.tables()) {
    for (const auto& watch : table->watches) watch->Break(Error(ErrorCode::kUnavailable, "connection reset"));
    table->watches.clear();
  }
  impl_->router.logs().BreakStreams();
}

}  // namespace kube::testing
