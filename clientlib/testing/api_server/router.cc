// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/router.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/testing/api_server/discovery.h"
#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

constexpr std::size_t kMaxBody = 3UL << 20;

HttpResponse ObjectResponse(const Written& written) {
  HttpResponse response = JsonResponse(written.is_created ? 201 : 200, written.revision->Text());
  for (const std::string& warning : written.warnings) {
    std::string text;
    for (const char c : warning) text.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
    response.headers.emplace_back("warning", "299 - \"" + text + "\"");
  }
  return response;
}

Outcome<HttpResponse> Respond(Outcome<Written> written) {
  if (!written) return written.error();
  return ObjectResponse(*written);
}

// From the body, and from the query, which older clients use.
Outcome<Json> DeleteOptionsOf(const HttpRequest& request, const Target& target) {
  Json options = Json::MakeObject();
  if (!request.body.empty()) {
    Result<Json> body = ParseJson(request.body);
    if (!body || !body->is_object()) return BadRequest("couldn't decode DeleteOptions");
    options = *std::move(body);
  }
  for (const std::string_view name : {"propagationPolicy", "orphanDependents", "gracePeriodSeconds"}) {
    const std::string_view text = target.Query(name);
    if (text.empty()) continue;
    if (name == "propagationPolicy") {
      options[name] = text;
    } else if (name == "orphanDependents") {
      options[name] = text == "true";
    } else {
      std::int64_t seconds = 0;
      std::from_chars(text.data(), text.data() + text.size(), seconds);
      options[name] = seconds;
    }
  }
  return options;
}

bool IsDryRun(const Json& options, const Target& target) {
  return !target.Query("dryRun").empty() || !IsEmpty(options.Find("dryRun"));
}

bool WantsMetadata(const HttpRequest& request) {
  return HeaderOf(request, "accept").find("as=PartialObjectMetadata") != std::string_view::npos;
}

bool IsJson(const HttpRequest& request) {
  const std::string type = MediaType(request);
  return type.empty() || type == "application/json" || type == "application/yaml";
}

// The router of the core group answers with a Status, those of custom resources with a plain text.
ApiError NothingThere(const Storage& storage, const ResourcePath& path) {
  for (const auto& [id, table] : storage.tables()) {
    const ResourceInfo& info = *table->info;
    if (!info.is_custom && info.group == path.group && info.version == path.version) return UnknownResource();
  }
  return PageNotFound();
}

}  // namespace

StreamResponse Router::Answer(const HttpRequest& request) {
  Outcome<StreamResponse> routed = Route(request);
  if (!routed) return {routed.error().ToResponse(), nullptr};
  return std::move(*routed);
}

Outcome<StreamResponse> Router::Route(const HttpRequest& request) {
  if (request.body.size() > kMaxBody) {
    return ApiError{413, "RequestEntityTooLarge",
                    Concat({"Request entity too large: limit is ", std::to_string(kMaxBody)}), Json::MakeObject()};
  }
  const Target target = ParseTarget(request.target);
  const std::optional<ResourcePath> path = ParseResourcePath(target.path);
  if (!path) {
    if (request.method != "GET") return PageNotFound();
    std::optional<HttpResponse> found = Discover(storage_, target.path);
    if (!found) return PageNotFound();
    return StreamResponse{*std::move(found), nullptr};
  }
  Table* const table = storage_.Find(path->group, path->version, path->resource);
  if (!table) return NothingThere(storage_, *path);
  if (path->has_namespace && !table->info->is_namespaced) return NothingThere(storage_, *path);
  if (!path->has_namespace && table->info->is_namespaced && !path->name.empty()) {
    return NothingThere(storage_, *path);
  }
  if (request.method == "GET" && path->name.empty() && target.IsTrue("watch")) {
    Outcome<std::shared_ptr<WatchQueue>> queue = StartWatch(storage_, clock_, *table, path->ns, target);
    if (!queue) return queue.error();
    return StreamResponse{JsonResponse(200, {}), MakeStream(storage_.shared(), *queue)};
  }
  if (path->subresource == "log" && table->info->Is("", "pods")) {
    return logs_.Answer(*table, {path->ns, path->name}, request, target);
  }
  Outcome<HttpResponse> response = MethodNotAllowed();
  if (path->name.empty()) {
    response = OnCollection(*table, *path, request, target);
  } else if (path->subresource.empty()) {
    response = OnObject(*table, {path->ns, path->name}, request, target, {});
  } else {
    response = OnSubresource(*table, *path, request, target);
  }
  if (!response) return response.error();
  return StreamResponse{std::move(*response), nullptr};
}

Outcome<HttpResponse> Router::OnCollection(Table& table, const ResourcePath& path, const HttpRequest& request,
                                           const Target& target) {
  if (request.method == "GET") {
    Outcome<std::string> text = ListText(storage_, table, path.ns, target, WantsMetadata(request));
    if (!text) return text.error();
    return JsonResponse(200, std::move(*text));
  }
  if (table.info->is_namespaced && !path.has_namespace) return MethodNotAllowed();
  if (request.method == "DELETE") return DeleteCollection(table, path, request, target);
  if (request.method != "POST") return MethodNotAllowed();
  Outcome<WriteOptions> options = ParseWriteOptions(request, target);
  if (!options) return options.error();
  if (!IsJson(request)) return UnsupportedMediaType();
  Outcome<Json> object = ParseBody(*table.info, request.body, options->duplicate_fields);
  if (!object) return object.error();
  return Respond(writer_.Create(table, path.ns, std::move(*object), *options));
}

Outcome<HttpResponse> Router::OnObject(Table& table, const ObjectKey& key, const HttpRequest& request,
                                       const Target& target, WriteOptions options) {
  const std::string subresource = std::move(options.subresource);
  if (request.method == "GET") {
    if (Check valid = CheckVersion(storage_, target); !valid) return valid.error();
    const RevisionPtr found = storage_.Get(table, key);
    if (!found) return NotFound(*table.info, key.name);
    return JsonResponse(200, WantsMetadata(request) ? PartialText(found->object()) : found->Text());
  }
  if (request.method == "DELETE" && subresource.empty()) return Delete(table, key, request, target);
  if (request.method != "PUT" && request.method != "PATCH") return MethodNotAllowed();
  Outcome<WriteOptions> parsed = ParseWriteOptions(request, target);
  if (!parsed) return parsed.error();
  parsed->subresource = subresource;
  if (request.method == "PATCH") {
    return Respond(writer_.Patch(table, key, MediaType(request), request.body, *parsed));
  }
  if (!IsJson(request)) return UnsupportedMediaType();
  Outcome<Json> object = ParseBody(*table.info, request.body, parsed->duplicate_fields);
  if (!object) return object.error();
  if (subresource == "finalize") return Respond(writer_.Finalize(table, key, *object, *parsed));
  return Respond(writer_.Update(table, key, std::move(*object), *parsed));
}

Outcome<HttpResponse> Router::OnSubresource(Table& table, const ResourcePath& path, const HttpRequest& request,
                                            const Target& target) {
  const ResourceInfo& info = *table.info;
  const ObjectKey key{path.ns, path.name};
  const std::string& name = path.subresource;
  if (name == "status" && info.has_status) return OnObject(table, key, request, target, {.subresource = name});
  if (name == "finalize" && info.Is("", "namespaces")) {
    if (request.method != "PUT") return MethodNotAllowed();
    return OnObject(table, key, request, target, {.subresource = name});
  }
  const bool is_binding = name == "binding" && info.Is("", "pods");
  const bool is_eviction = name == "eviction" && info.Is("", "pods");
  if (!is_binding && !is_eviction && !(name == "scale" && info.has_scale)) return NothingThere(storage_, path);
  Outcome<WriteOptions> options = ParseWriteOptions(request, target);
  if (request.method == "GET" && name == "scale") options = WriteOptions{};
  if (!options) return options.error();
  if (name == "scale") return OnScale(table, key, request, *options);
  if (request.method != "POST") return MethodNotAllowed();
  Outcome<Json> body = ParseBody(info, request.body, options->duplicate_fields);
  if (!body) return body.error();
  if (is_binding) {
    if (Check bound = writer_.Bind(key, *body, *options); !bound) return bound.error();
  } else {
    const Json* const delete_options = body->Find("deleteOptions");
    Outcome<Deleted> deleted =
        writer_.Delete(table, key, delete_options ? *delete_options : Json(), options->is_dry_run);
    if (!deleted) return deleted.error();
  }
  return JsonResponse(201, ToText(SuccessStatus(201)));
}

Outcome<HttpResponse> Router::OnScale(Table& table, const ObjectKey& key, const HttpRequest& request,
                                      const WriteOptions& options) {
  Outcome<Json> scale = MethodNotAllowed();
  if (request.method == "GET") {
    const RevisionPtr found = storage_.Get(table, key);
    if (!found) return NotFound(*table.info, key.name);
    scale = writer_.ScaleOf(*table.info, found->object());
  } else if (request.method == "PATCH") {
    scale = writer_.PatchScale(table, key, MediaType(request), request.body, options);
  } else if (request.method == "PUT") {
    std::vector<std::string> duplicates;
    Outcome<Json> body = ParseBody(*table.info, request.body, duplicates);
    if (!body) return body.error();
    if (!body->Find("metadata")) (*body)["metadata"] = Json::MakeObject();
    scale = writer_.UpdateScale(table, key, *body, options);
  }
  if (!scale) return scale.error();
  return JsonResponse(200, ToText(*scale));
}

Outcome<HttpResponse> Router::Delete(Table& table, const ObjectKey& key, const HttpRequest& request,
                                     const Target& target) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  Outcome<Json> options = DeleteOptionsOf(request, target);
  if (!options) return options.error();
  Outcome<Deleted> deleted = writer_.Delete(table, key, *options, IsDryRun(*options, target));
  if (!deleted) return deleted.error();
  if (!deleted->is_gone || info->is_returned_when_deleted) return JsonResponse(200, deleted->revision->Text());
  Json details = Json::MakeObject({{"name", key.name}});
  if (!info->group.empty()) details["group"] = info->group;
  details["kind"] = info->plural;
  details["uid"] = TextAt(deleted->revision->object(), {"metadata", "uid"});
  return JsonResponse(200, ToText(SuccessStatus(0, std::move(details))));
}

Outcome<HttpResponse> Router::DeleteCollection(Table& table, const ResourcePath& path, const HttpRequest& request,
                                               const Target& target) {
  Outcome<Json> options = DeleteOptionsOf(request, target);
  if (!options) return options.error();
  Outcome<std::string> listed = ListText(storage_, table, path.ns, target);  // Also checks the options.
  if (!listed) return listed.error();
  Outcome<Selector> selector =
      Selector::Parse(*table.info, target.Query("labelSelector"), target.Query("fieldSelector"));
  if (!selector) return selector.error();
  std::vector<ObjectKey> keys;
  for (const auto& [key, revision] : table.objects) {
    if ((path.ns.empty() || key.ns == path.ns) && selector->Matches(revision->object())) keys.push_back(key);
  }
  for (const ObjectKey& key : keys) {
    Outcome<Deleted> deleted = writer_.Delete(table, key, *options, IsDryRun(*options, target));
    if (!deleted && deleted.error().code != 404) return deleted.error();
  }
  return JsonResponse(200, std::move(*listed));
}

}  // namespace kube::testing
