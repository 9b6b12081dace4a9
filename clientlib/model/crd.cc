// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/crd.h"

#include "clientlib/base/lower_case.h"
#include "clientlib/model/openapi_schema.h"

namespace kube {
namespace {

Json ListOf(const std::vector<std::string_view>& names) {
  Json list = Json::MakeArray();
  for (const std::string_view name : names) list.Append(name);
  return list;
}

// A rule about the name says so to the API server, whose refusals otherwise name the field "<nil>". It takes only paths
// that the schema has.
void NameTheName(Json& schema) {
  Json* rules = schema.Find("x-kubernetes-validations");
  if (rules == nullptr) return;
  for (Json& rule : *rules->AsArray()) {
    const Json* message = rule.Find("message");
    if (message == nullptr || !message->AsString()->starts_with("metadata.name ")) continue;
    rule["fieldPath"] = ".metadata.name";
    schema["properties"]["metadata"]["properties"]["name"]["type"] = "string";
  }
}

Json RootSchema(const Kind& kind, std::string_view doc, std::span<const CelRule> cel) {
  Json schema = SchemaOf(kind.fields, doc, cel);
  // In front of our own fields, as kubectl explain shows them.
  Json properties = Json::MakeObject({
      {"apiVersion", Json::MakeObject({{"description", "Version of the schema of this object."}, {"type", "string"}})},
      {"kind", Json::MakeObject({{"description", "What this object is."}, {"type", "string"}})},
      {"metadata", Json::MakeObject({{"type", "object"}})},
  });
  Json& own = schema["properties"];
  if (Json::Object* members = own.AsObject()) {
    for (auto& [name, value] : *members) properties[name] = std::move(value);
  }
  own = std::move(properties);
  NameTheName(schema);
  return schema;
}

Json ColumnJson(const PrinterColumn& column) {
  Json json = Json::MakeObject({{"name", column.name}, {"type", column.type}});
  if (!column.format.empty()) json["format"] = column.format;
  json["jsonPath"] = column.json_path;
  if (!column.description.empty()) json["description"] = column.description;
  if (column.priority != 0) json["priority"] = column.priority;
  return json;
}

Json Subresources(const CrdInfo& info) {
  Json json;
  if (info.has_status) json["status"] = Json::MakeObject();
  if (info.scale) {
    Json& scale = json["scale"];
    scale["specReplicasPath"] = info.scale->spec_path;
    scale["statusReplicasPath"] = info.scale->status_path;
    if (!info.scale->selector_path.empty()) scale["labelSelectorPath"] = info.scale->selector_path;
  }
  return json;
}

Json VersionJson(const CrdInfo& info, const CrdVersion& version, bool is_stored) {
  Json json =
      Json::MakeObject({{"name", version.kind->version}, {"served", version.is_served}, {"storage", is_stored}});
  if (version.is_deprecated) json["deprecated"] = true;
  if (!version.deprecation_warning.empty()) json["deprecationWarning"] = version.deprecation_warning;
  json["schema"]["openAPIV3Schema"] = RootSchema(*version.kind, version.doc, info.cel);
  if (Json subresources = Subresources(info); !subresources.is_null()) json["subresources"] = std::move(subresources);
  for (const PrinterColumn& column : info.printer_columns) json["additionalPrinterColumns"].Append(ColumnJson(column));
  for (const std::string_view path : info.selectable_fields) {
    json["selectableFields"].Append(Json::MakeObject({{"jsonPath", path}}));
  }
  return json;
}

}  // namespace

Json MakeCrd(const CrdInfo& info) {
  const Kind& kind = *info.kind;
  Json names =
      Json::MakeObject({{"kind", kind.kind},
                        {"listKind", std::string(kind.kind) + "List"},
                        {"plural", kind.plural},
                        {"singular", info.singular.empty() ? LowerCase(kind.kind) : std::string(info.singular)}});
  if (!info.short_names.empty()) names["shortNames"] = ListOf(info.short_names);
  if (!info.categories.empty()) names["categories"] = ListOf(info.categories);

  Json versions = Json::MakeArray();
  versions.Append(VersionJson(info,
                              {.kind = info.kind,
                               .is_served = info.is_served,
                               .is_deprecated = info.is_deprecated,
                               .deprecation_warning = info.deprecation_warning,
                               .doc = info.doc},
                              true));
  for (const CrdVersion& version : info.more_versions) versions.Append(VersionJson(info, version, false));

  Json crd = Json::MakeObject({{"apiVersion", "apiextensions.k8s.io/v1"}, {"kind", "CustomResourceDefinition"}});
  crd["metadata"]["name"] = std::string(kind.plural).append(".").append(kind.group);
  if (!info.api_approval.empty()) {
    crd["metadata"]["annotations"] = Json::MakeObject({{"api-approved.kubernetes.io", info.api_approval}});
  }
  Json& spec = crd["spec"];
  spec["group"] = kind.group;
  spec["names"] = std::move(names);
  spec["scope"] = kind.is_namespaced ? "Namespaced" : "Cluster";
  spec["versions"] = std::move(versions);
  return crd;
}

}  // namespace kube
