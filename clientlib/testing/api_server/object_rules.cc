// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/object_rules.h"

#include <algorithm>
#include <span>
#include <string>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

using Errors = std::vector<FieldError>;

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

bool IsLabelName(std::string_view name) {
  return !name.empty() && IsLowerOrDigit(name.front()) && IsLowerOrDigit(name.back()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsSubdomain(std::string_view name) {
  for (;;) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    if (!IsLabelName(name.substr(0, dot))) return false;
    if (dot == name.size()) return true;
    name.remove_prefix(dot + 1);
  }
}

constexpr std::string_view kSubdomainRule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kLabelRule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kServiceRule =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kKeyRule =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kValueRule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue', or 'my_value', or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

bool IsWord(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string Quoted(std::string_view text) { return Concat({"\"", text, "\""}); }

void CheckName(const ResourceInfo& info, const std::string& name, Errors& errors) {
  if (name.empty()) {
    return errors.push_back(RequiredField("metadata.name", "name or generateName is required"));
  }
  const bool is_service = info.Is("", "services"), is_namespace = info.Is("", "namespaces");
  const std::size_t limit = is_service || is_namespace ? 63 : 253;
  if (name.size() > limit) {
    errors.push_back(
        {"FieldValueInvalid",
         Concat({"Invalid value: ", Quoted(name)}) + ": must be no more than " + std::to_string(limit) + " bytes",
         "metadata.name"});
  }
  if (is_service && !(IsLabelName(name) && name.front() >= 'a')) {
    errors.push_back(InvalidField("metadata.name", Quoted(name), kServiceRule));
  } else if (is_namespace && name.find('.') != std::string::npos) {
    errors.push_back(InvalidField("metadata.name", Quoted(name), "must not contain dots"));
  } else if (is_namespace && !IsLabelName(name)) {
    errors.push_back(InvalidField("metadata.name", Quoted(name), kLabelRule));
  } else if (!IsSubdomain(name)) {
    errors.push_back(InvalidField("metadata.name", Quoted(name), kSubdomainRule));
  }
}

void CheckKey(const std::string& key, const std::string& field, Errors& errors) {
  const std::size_t slash = key.find('/');
  const std::string_view prefix =
      slash == std::string::npos ? std::string_view() : std::string_view(key).substr(0, slash);
  const std::string_view name = std::string_view(key).substr(slash == std::string::npos ? 0 : slash + 1);
  if (slash != std::string::npos && prefix.empty()) {
    errors.push_back(InvalidField(field, Quoted(key), "prefix part must be non-empty"));
  } else if (slash != std::string::npos && !IsSubdomain(prefix)) {
    errors.push_back(InvalidField(field, Quoted(key), Concat({"prefix part ", kSubdomainRule})));
  }
  if (name.empty()) {
    errors.push_back(InvalidField(field, Quoted(key), "name part must be non-empty"));
  } else if (name.size() > 63) {
    errors.push_back(InvalidField(field, Quoted(key), "name part must be no more than 63 bytes"));
  }
  if (!IsWord(name)) errors.push_back(InvalidField(field, Quoted(key), kKeyRule));
}

void CheckLabels(const Json& object, Errors& errors) {
  const Json* const labels = object.At({"metadata", "labels"});
  if (!labels || !labels->AsObject()) return;
  for (const auto& [key, value] : *labels->AsObject()) {
    CheckKey(key, "metadata.labels", errors);
    const std::string* const text = value.AsString();
    if (!text || text->empty()) continue;
    if (text->size() > 63) {
      errors.push_back(InvalidField("metadata.labels", Quoted(*text), "must be no more than 63 bytes"));
    } else if (!IsWord(*text)) {
      errors.push_back(InvalidField("metadata.labels", Quoted(*text), kValueRule));
    }
  }
}

bool Contains(const Json* list, const Json& item) {
  const Json::Array* const items = list ? list->AsArray() : nullptr;
  return items && std::find(items->begin(), items->end(), item) != items->end();
}

// Finalizers of an object that is being deleted can only be removed.
void CheckFinalizers(const Json& object, const Json& before, Errors& errors) {
  const Json* const finalizers = object.At({"metadata", "finalizers"});
  if (!IsBeingDeleted(before) || !finalizers || !finalizers->AsArray()) return;
  std::string added;
  for (const Json& item : *finalizers->AsArray()) {
    if (Contains(before.At({"metadata", "finalizers"}), item)) continue;
    added += (added.empty() ? "" : ", ") + ToText(item);
  }
  if (added.empty()) return;
  const FieldError error = ForbiddenField(
      "metadata.finalizers",
      "no new finalizers can be added if the object is being deleted, found new finalizers []string{" + added + "}");
  errors.insert(errors.end(), 2, error);  // The server reports it twice.
}

void CheckOwners(const Json& object, Errors& errors) {
  const Json* const owners = object.At({"metadata", "ownerReferences"});
  if (!owners || !owners->AsArray()) return;
  const Json* controller = nullptr;
  for (std::size_t i = 0; i < owners->AsArray()->size(); ++i) {
    const Json& owner = (*owners->AsArray())[i];
    const std::string path = Concat({"metadata.ownerReferences[", std::to_string(i)}) + "]";
    for (const std::string_view field : {"apiVersion", "kind", "name", "uid"}) {
      if (!TextAt(owner, {field}).empty()) continue;
      errors.push_back(InvalidField(path + "." + std::string(field), "\"\"",
                                    field == "apiVersion" ? "version must not be empty" : "must not be empty"));
    }
    if (!IsTrueAt(owner, {"controller"})) continue;
    if (controller) {
      errors.push_back(
          InvalidField("metadata.ownerReferences", ToText(*owners),
                       Concat({"Only one reference can have Controller set to true. Found \"true\" in references for ",
                               TextAt(*controller, {"kind"})}) +
                           "/" + std::string(TextAt(*controller, {"name"})) + " and " +
                           std::string(TextAt(owner, {"kind"})) + "/" + std::string(TextAt(owner, {"name"}))));
    }
    controller = &owner;
  }
}

ApiError Missing(const ResourceInfo& info, std::string_view field, const Json& object) {
  const std::string text = ToText(object);
  return BadRequest(Concat({"the object provided is unrecognized (must be of type ", info.kind, "): Object '", field,
                            "' is missing in '", text, "' (", text, ")"}));
}

// Maps of text must contain only text.
Check CheckTexts(const ResourceInfo& info, const Json& object) {
  const auto check = [&](const Json* map, std::string_view field) -> Check {
    if (!map || !map->AsObject()) return Done();
    for (const auto& [key, value] : *map->AsObject()) {
      if (value.AsString() || value.is_null()) continue;
      const char* const type = value.AsBool()      ? "bool"
                               : value.is_array()  ? "array"
                               : value.is_object() ? "object"
                                                   : "number";
      return BadRequest(
          Concat({info.kind, " in version \"", info.version, "\" cannot be handled as a ", info.kind,
                  ": json: cannot unmarshal ", type, " into Go struct field ", field, " of type string"}));
    }
    return Done();
  };
  for (const std::string_view name : {"labels", "annotations"}) {
    if (Check typed = check(object.At({"metadata", name}), Concat({"ObjectMeta.", name})); !typed) return typed;
  }
  if (info.Is("", "configmaps")) return check(object.Find("data"), "ConfigMap.data");
  return Done();
}

// Whether the members of two objects are equal, except those in `skipped`.
bool SameMembers(const Json& a, const Json& b, JsonPath skipped) {
  const auto is_skipped = [&](const std::string& name) {
    return std::find(skipped.begin(), skipped.end(), name) != skipped.end();
  };
  std::size_t left = 0, right = 0;
  for (const auto& [name, value] : *a.AsObject()) {
    if (is_skipped(name)) continue;
    const Json* const other = b.Find(name);
    if (!other || *other != value) return false;
    ++left;
  }
  for (const auto& [name, value] : *b.AsObject()) right += is_skipped(name) ? 0 : 1;
  return left == right;
}

}  // namespace

Check CheckKind(const ResourceInfo& info, Json& object) {
  const std::string kind(TextAt(object, {"kind"})), version(TextAt(object, {"apiVersion"}));
  if (info.is_custom) {
    if (kind.empty()) return Missing(info, "Kind", object);
    if (version.empty()) return Missing(info, "apiVersion", object);
  }
  const std::string wanted = info.ApiVersion();
  if (kind.empty() || kind == info.kind) {
    if (!version.empty() && version != wanted && !info.is_custom) {
      return BadRequest(info.kind + " in version \"" + info.version + "\" cannot be handled as a " + info.kind +
                        ": no kind \"" + info.kind + "\" is registered for version \"" + version +
                        "\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"");
    }
    if (!version.empty() && version != wanted) {
      return BadRequest("the API version in the data (" + version + ") does not match the expected API version (" +
                        wanted + ")");
    }
  } else if (info.is_custom) {
    return Invalid(info.group, kind, NameOf(object), {InvalidField("kind", Quoted(kind), "must be " + info.kind)});
  } else {
    const std::string short_version = version.substr(version.rfind('/') + 1);
    return BadRequest(kind + " in version \"" + short_version + "\" cannot be handled as a " + info.kind +
                      ": converting (" + short_version + "." + kind + ") to (" +
                      (info.group.empty() ? "core" : info.group.substr(0, info.group.find('.'))) + "." + info.kind +
                      "): unknown conversion");
  }
  if (Check typed = CheckTexts(info, object); !typed) return typed;
  object["kind"] = info.kind;
  object["apiVersion"] = wanted;
  ObjectIn(object, "metadata");
  return Done();
}

std::string_view WhyNoSubdomain(std::string_view name) {
  return name.size() <= 253 && IsSubdomain(name) ? std::string_view() : kSubdomainRule;
}

void RemoveNulls(Json& value) {
  if (Json::Array* const items = value.AsArray()) {
    for (Json& item : *items) RemoveNulls(item);
  } else if (Json::Object* const members = value.AsObject()) {
    std::erase_if(*members, [](const Json::Member& member) { return member.second.is_null(); });
    for (auto& [name, member] : *members) RemoveNulls(member);
  }
}

std::vector<std::string> PruneEnvelope(const ResourceInfo& info, Json& object) {
  static constexpr std::string_view kMetadata[] = {
      "name",        "namespace",         "generateName",      "uid",        "resourceVersion",
      "generation",  "creationTimestamp", "deletionTimestamp", "labels",     "deletionGracePeriodSeconds",
      "annotations", "ownerReferences",   "managedFields",     "finalizers", "selfLink"};
  static constexpr std::string_view kRoot[] = {"apiVersion", "kind", "metadata", "spec", "status"};
  static constexpr std::string_view kConfig[] = {"apiVersion", "kind",      "metadata",   "data",
                                                 "binaryData", "immutable", "stringData", "type"};
  std::vector<std::string> unknown;
  const auto prune = [&](Json& json, std::span<const std::string_view> known, std::string_view prefix) {
    std::erase_if(*json.AsObject(), [&](const Json::Member& member) {
      if (std::find(known.begin(), known.end(), member.first) != known.end()) return false;
      unknown.push_back(Concat({prefix, member.first}));
      return true;
    });
  };
  prune(ObjectIn(object, "metadata"), kMetadata, "metadata.");
  if (info.is_custom) return unknown;
  if (info.Is("", "configmaps") || info.Is("", "secrets")) {
    prune(object, kConfig, "");
  } else if (info.has_status || info.Is("coordination.k8s.io", "leases")) {
    prune(object, kRoot, "");
  }
  return unknown;
}

void CarryMetadata(const Json& before, Json& object) {
  const Json& old = *before.Find("metadata");
  Json& metadata = ObjectIn(object, "metadata");
  for (const std::string_view name : {"name", "namespace", "uid", "creationTimestamp", "generation",
                                      "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"}) {
    CopyMember(old, metadata, name);
  }
  metadata.Erase("selfLink");
}

std::vector<FieldError> ValidateMetadata(const ResourceInfo& info, const Json& object, const Json* before) {
  Errors errors;
  if (!before) CheckName(info, std::string(NameOf(object)), errors);
  CheckLabels(object, errors);
  if (const Json* const notes = object.At({"metadata", "annotations"}); notes && notes->AsObject()) {
    for (const auto& [key, value] : *notes->AsObject()) CheckKey(key, "metadata.annotations", errors);
  }
  CheckOwners(object, errors);
  if (before) CheckFinalizers(object, *before, errors);
  return errors;
}

bool IsNewGeneration(const ResourceInfo& info, const Json& before, const Json& after) {
  if (info.Is("apps", "deployments") &&
      !Same(before.At({"metadata", "annotations"}), after.At({"metadata", "annotations"}))) {
    return true;
  }
  const bool ignores_status = info.has_status;
  return ignores_status ? !SameMembers(before, after, {"metadata", "status"})
                        : !SameMembers(before, after, {"metadata"});
}

}  // namespace kube::testing
