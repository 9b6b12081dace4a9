// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/custom_resources.h"

#include <algorithm>
#include <utility>

#include "clientlib/base/lower_case.h"
#include "clientlib/testing/api_server/builtin_schemas.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/kind_rules.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {
namespace {

using Errors = std::vector<FieldError>;

std::vector<std::string> Texts(const Json* list) {
  std::vector<std::string> out;
  if (!list || !list->AsArray()) return out;
  for (const Json& item : *list->AsArray()) {
    if (item.AsString()) out.push_back(*item.AsString());
  }
  return out;
}

// ".spec.replicas"
std::vector<std::string> StepsOf(std::string_view path) {
  std::vector<std::string> steps;
  while (!path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    const std::size_t end = std::min(path.find('.'), path.size());
    steps.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return steps;
}

const Json* StorageVersion(const Json& definition) {
  const Json* const versions = definition.At({"spec", "versions"});
  if (!versions || !versions->AsArray()) return nullptr;
  for (const Json& version : *versions->AsArray()) {
    if (IsTrueAt(version, {"storage"})) return &version;
  }
  return nullptr;
}

void SetDefinitionDefaults(Json& object) {
  Json& spec = ObjectIn(object, "spec");
  Json& names = ObjectIn(spec, "names");
  const std::string kind(TextAt(names, {"kind"}));
  SetIfMissing(names, "singular", LowerCase(kind));
  SetIfMissing(names, "listKind", kind + "List");
  SetIfMissing(ObjectIn(spec, "conversion"), "strategy", "None");
}

// The server's controllers do all this a moment later; here it is done when the definition is created.
void PrepareDefinition(Json& object, Storage& storage) {
  const std::string now = storage.Now();
  const auto condition = [&](const char* type, const char* reason, const char* message) {
    return Json::MakeObject(
        {{"lastTransitionTime", now}, {"message", message}, {"reason", reason}, {"status", "True"}, {"type", type}});
  };
  object["metadata"]["finalizers"].Append(kDefinitionFinalizer);
  const Json* const version = StorageVersion(object);
  object["status"] = Json::MakeObject(
      {{"acceptedNames", Json(object["spec"]["names"])},
       {"conditions",
        Json::MakeArray({condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                         condition("Established", "InitialNamesAccepted", "the initial names have been accepted")})},
       {"storedVersions", Json::MakeArray({version ? TextAt(*version, {"name"}) : "v1"})}});
}

Errors ValidateDefinition(const Json& object, const Json* before) {
  Errors errors;
  const std::string wanted =
      std::string(TextAt(object, {"spec", "names", "plural"})) + "." + std::string(TextAt(object, {"spec", "group"}));
  const std::string name(NameOf(object));
  if (name != wanted) {
    errors.push_back(InvalidField("metadata.name", "\"" + name + "\"", "must be spec.names.plural+\".\"+spec.group"));
  }
  if (!StorageVersion(object)) {
    errors.push_back(InvalidField("spec.versions", "[]", "must have exactly one version marked as storage version"));
  }
  if (before && !Same(object.At({"spec", "group"}), before->At({"spec", "group"}))) {
    errors.push_back(InvalidField("spec.group", ToText(*object.At({"spec", "group"})), "field is immutable"));
  }
  return errors;
}

void FindUnknown(const StructuralSchema& schema, const Json& value, const std::string& path, bool is_root,
                 std::vector<std::string>& found) {
  if (const Json::Array* const items = value.AsArray()) {
    if (!schema.Items()) return;
    for (std::size_t i = 0; i < items->size(); ++i) {
      FindUnknown(*schema.Items(), (*items)[i], path + "[" + std::to_string(i) + "]", false, found);
    }
    return;
  }
  const Json::Object* const members = value.AsObject();
  if (!members) return;
  for (const auto& [name, member] : *members) {
    if (is_root && (name == "apiVersion" || name == "kind" || name == "metadata")) continue;
    std::string at = path.empty() ? name.str() : path + "." + name;
    if (const StructuralSchema* const field = schema.Property(name)) {
      FindUnknown(*field, member, at, false, found);
    } else if (!schema.preserves_unknown_fields()) {
      found.push_back(std::move(at));
    }
  }
}

}  // namespace

const KindRules kDefinitionRules{SetDefinitionDefaults, PrepareDefinition, nullptr, nullptr};

Outcome<std::shared_ptr<const ResourceInfo>> InfoFromDefinition(const Json& definition) {
  const std::string name(NameOf(definition));
  if (const Errors errors = ValidateDefinition(definition, nullptr); !errors.empty()) {
    return Invalid(kDefinitionGroup, "CustomResourceDefinition", name, errors);
  }
  const Json& spec = *definition.Find("spec");
  const Json& names = *spec.Find("names");
  const Json& version = *StorageVersion(definition);
  ResourceInfo info{.group = std::string(TextAt(spec, {"group"})),
                    .version = std::string(TextAt(version, {"name"})),
                    .kind = std::string(TextAt(names, {"kind"})),
                    .plural = std::string(TextAt(names, {"plural"})),
                    .singular = std::string(TextAt(names, {"singular"})),
                    .short_names = Texts(names.Find("shortNames")),
                    .categories = Texts(names.Find("categories")),
                    .is_namespaced = TextAt(spec, {"scope"}) == "Namespaced",
                    .is_custom = true,
                    .has_generation = true,
                    .is_unconditional_update_allowed = false};
  info.is_terminating = !IsEmptyAt(definition, {"metadata", "deletionTimestamp"});
  info.has_status = version.At({"subresources", "status"}) != nullptr;
  if (const Json* const scale = version.At({"subresources", "scale"})) {
    info.has_scale = true;
    info.replicas_path = StepsOf(TextAt(*scale, {"specReplicasPath"}));
    info.status_replicas_path = StepsOf(TextAt(*scale, {"statusReplicasPath"}));
    info.selector_path = StepsOf(TextAt(*scale, {"labelSelectorPath"}));
  }
  if (const Json* const fields = version.Find("selectableFields"); fields && fields->AsArray()) {
    for (const Json& field : *fields->AsArray()) {
      const std::string_view path = TextAt(field, {"jsonPath"});
      if (path.starts_with('.')) info.selectable_fields.emplace_back(path.substr(1));
    }
  }
  if (const Json* const open_api = version.At({"schema", "openAPIV3Schema"})) {
    Json schema = *open_api;
    if (!IsTrueAt(schema, {"x-kubernetes-preserve-unknown-fields"}) || schema.Find("properties")) {
      schema["properties"]["metadata"] = MetadataSchema();
    }
    Result<std::shared_ptr<const StructuralSchema>> parsed = StructuralSchema::Parse(schema);
    if (!parsed) {
      return Invalid(kDefinitionGroup, "CustomResourceDefinition", name,
                     {{"FieldValueInvalid", parsed.error().message(), "spec.validation.openAPIV3Schema"}});
    }
    info.schema = *std::move(parsed);
  }
  return std::make_shared<const ResourceInfo>(std::move(info));
}

std::vector<std::string> UnknownFields(const StructuralSchema& schema, const Json& object) {
  std::vector<std::string> found;
  FindUnknown(schema, object, {}, true, found);
  return found;
}

}  // namespace kube::testing
