// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/discovery.h"

#include <map>
#include <set>
#include <string_view>

namespace kube::testing {
namespace {

HttpResponse Answer(const Json& json) { return JsonResponse(200, ToText(json)); }

Json Texts(const std::vector<std::string>& texts) {
  Json list = Json::MakeArray();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

Json Version() {
  return Json::MakeObject({{"major", "1"},
                           {"minor", "36"},
                           {"gitVersion", "v1.36.3"},
                           {"gitCommit", ""},
                           {"gitTreeState", "clean"},
                           {"buildDate", "1970-01-01T00:00:00Z"},
                           {"goVersion", ""},
                           {"compiler", ""},
                           {"platform", "linux/amd64"}});
}

Json GroupVersion(const std::string& group, const std::string& version) {
  return Json::MakeObject({{"groupVersion", group + "/" + version}, {"version", version}});
}

Json Group(const std::string& name, const std::set<std::string>& versions) {
  Json list = Json::MakeArray();
  for (const std::string& version : versions) list.Append(GroupVersion(name, version));
  return Json::MakeObject(
      {{"name", name}, {"versions", std::move(list)}, {"preferredVersion", GroupVersion(name, *versions.begin())}});
}

std::map<std::string, std::set<std::string>> GroupsOf(const Storage& storage) {
  std::map<std::string, std::set<std::string>> groups;
  for (const auto& [id, table] : storage.tables()) {
    if (!table->info->group.empty()) groups[table->info->group].insert(table->info->version);
  }
  return groups;
}

Json Subresource(const ResourceInfo& info, const std::string& name, const std::string& kind, bool is_create,
                 const std::string& group = {}, const std::string& version = {}) {
  Json json =
      Json::MakeObject({{"name", info.plural + "/" + name}, {"singularName", ""}, {"namespaced", info.is_namespaced}});
  if (!version.empty()) {
    if (!group.empty()) json["group"] = group;
    json["version"] = version;
  }
  json["kind"] = kind;
  json["verbs"] = is_create ? Json::MakeArray({"create"}) : Json::MakeArray({"get", "patch", "update"});
  return json;
}

void AppendResource(const ResourceInfo& info, Json& list) {
  Json json = Json::MakeObject({{"name", info.plural},
                                {"singularName", info.singular},
                                {"namespaced", info.is_namespaced},
                                {"kind", info.kind},
                                {"verbs", Json::MakeArray({"create", "delete", "deletecollection", "get", "list",
                                                           "patch", "update", "watch"})}});
  if (!info.short_names.empty()) json["shortNames"] = Texts(info.short_names);
  if (!info.categories.empty()) json["categories"] = Texts(info.categories);
  list.Append(std::move(json));
  if (info.has_status) list.Append(Subresource(info, "status", info.kind, false));
  if (info.has_scale) list.Append(Subresource(info, "scale", "Scale", false, "autoscaling", "v1"));
  if (info.Is("", "pods")) {
    list.Append(Subresource(info, "binding", "Binding", true));
    list.Append(Subresource(info, "eviction", "Eviction", true, "policy", "v1"));
  }
  if (info.Is("", "namespaces")) list.Append(Subresource(info, "finalize", "Namespace", false));
}

std::optional<HttpResponse> ResourceList(const Storage& storage, const std::string& group, const std::string& version) {
  Json resources = Json::MakeArray();
  for (const auto& [id, table] : storage.tables()) {
    if (table->info->group == group && table->info->version == version) AppendResource(*table->info, resources);
  }
  if (resources.AsArray()->empty()) return std::nullopt;
  return Answer(Json::MakeObject({{"kind", "APIResourceList"},
                                  {"apiVersion", "v1"},
                                  {"groupVersion", group.empty() ? version : group + "/" + version},
                                  {"resources", std::move(resources)}}));
}

}  // namespace

std::optional<HttpResponse> Discover(const Storage& storage, const std::vector<std::string>& path) {
  if (path.size() == 1) {
    if (path[0] == "version") return Answer(Version());
    if (path[0] == "readyz" || path[0] == "healthz" || path[0] == "livez") {
      return HttpResponse{200, {{"content-type", "text/plain; charset=utf-8"}}, "ok"};
    }
    if (path[0] == "api") {
      return Answer(Json::MakeObject({{"kind", "APIVersions"},
                                      {"versions", Json::MakeArray({"v1"})},
                                      {"serverAddressByClientCIDRs", Json::MakeArray()}}));
    }
    if (path[0] == "apis") {
      Json groups = Json::MakeArray();
      for (const auto& [name, versions] : GroupsOf(storage)) groups.Append(Group(name, versions));
      return Answer(Json::MakeObject({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}}));
    }
  }
  if (path.size() == 2 && path[0] == "api") return ResourceList(storage, "", path[1]);
  if (path.size() == 2 && path[0] == "apis") {
    const auto groups = GroupsOf(storage);
    const auto at = groups.find(path[1]);
    if (at == groups.end()) return std::nullopt;
    Json group = Group(at->first, at->second);
    group["kind"] = "APIGroup";
    group["apiVersion"] = "v1";
    return Answer(group);
  }
  if (path.size() == 3 && path[0] == "apis") return ResourceList(storage, path[1], path[2]);
  return std::nullopt;
}

}  // namespace kube::testing
