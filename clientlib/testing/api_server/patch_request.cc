// SPDX-License-Identifier: Apache-2.0
// Writer::Patch(): the four kinds of patches.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/custom_resources.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/managed_fields.h"
#include "clientlib/testing/api_server/object_rules.h"
#include "clientlib/testing/api_server/patches.h"
#include "clientlib/testing/api_server/writer.h"

namespace kube::testing {
namespace {

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicMergePatch = "application/strategic-merge-patch+json";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

ApiError RejectedPatch() {
  return {422, "Invalid", "the server rejected our request due to an error in our request", Json::MakeObject()};
}

// Changes `object`, which the client sees as `info` says.
Check ApplyPatch(const ResourceInfo& info, bool is_custom, Json& object, std::string_view media_type,
                 std::string_view body) {
  if (media_type != kJsonPatch && media_type != kMergePatch && (media_type != kStrategicMergePatch || is_custom)) {
    ApiError error = UnsupportedMediaType();
    if (is_custom) {
      error.message =
          "the body of the request was in an unknown format - accepted media types include: "
          "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
      error.details = {};
    }
    return error;
  }
  const Result<Json> patch = ParseJson(body);
  if (!patch) return BadRequest("error decoding patch: unexpected end of JSON input");
  if (media_type == kJsonPatch) {
    if (!patch->is_array()) {
      return BadRequest(
          "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp");
    }
    if (!ApplyJsonPatch(object, *patch)) return RejectedPatch();
  } else if (!patch->is_object()) {
    return BadRequest(
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}");
  } else if (media_type == kMergePatch) {
    MergePatch(object, *patch);
  } else if (Status done = ApplyStrategicMergePatch(info.schema.get(), object, *patch); !done) {
    return BadRequest(done.error().message());
  }
  if (!object.is_object()) return RejectedPatch();
  return Done();
}

ApiError AppliedConflicts(const std::vector<ApplyConflict>& conflicts) {
  Json causes = Json::MakeArray();
  std::string list;
  std::string_view manager;
  for (const ApplyConflict& conflict : conflicts) {
    causes.Append(Json::MakeObject(
        {{"reason", "FieldManagerConflict"}, {"message", conflict.message}, {"field", conflict.field}}));
  }
  if (conflicts.size() == 1) {
    list = "1 conflict: " + conflicts[0].message + ": " + conflicts[0].field;
  } else {
    list = std::to_string(conflicts.size()) + " conflicts: ";
    bool is_first = true;
    for (const ApplyConflict& conflict : conflicts) {
      if (conflict.message != manager) {
        manager = conflict.message;
        list += (is_first ? "" : "\n") + std::string("conflicts") + conflict.message.substr(8) + ":";
        is_first = false;
      }
      list += "\n- " + conflict.field;
    }
  }
  return {409, "Conflict", "Apply failed with " + list, Json::MakeObject({{"causes", std::move(causes)}})};
}

// A subresource's managers own its part of the object, the others all but that.
void KeepOwnPart(const ResourceInfo& info, std::string_view subresource, Json& applied) {
  if (subresource.empty()) {
    if (info.has_status) applied.Erase("status");
    return;
  }
  std::erase_if(*applied.AsObject(), [&](const Json::Member& member) {
    return member.first != "apiVersion" && member.first != "kind" && member.first != "metadata" &&
           member.first != subresource;
  });
  if (!info.is_custom) return;
  Json metadata = Json::MakeObject();
  for (const std::string_view name : {"name", "namespace"}) CopyMember(applied["metadata"], metadata, name);
  applied["metadata"] = std::move(metadata);
}

// What stands twice in a list of type set or map, as the server says it; empty if nothing.
std::string FindTwice(const StructuralSchema& schema, const Json& value, const std::string& path) {
  if (const Json::Array* const items = value.AsArray()) {
    const bool is_set = schema.list_type() == StructuralSchema::ListType::kSet;
    const bool is_map = schema.list_type() == StructuralSchema::ListType::kMap;
    std::vector<std::string> seen;
    for (const Json& item : *items) {
      std::string key = is_set ? Concat({"=", ToText(item)}) : "";
      if (is_map) {
        for (const std::string& name : schema.list_map_keys()) {
          const Json* const part = item.Find(name);
          key += (key.empty() ? "" : ",") + name + "=" + (part ? ToText(*part) : "null");
        }
      }
      if (std::count(seen.begin(), seen.end(), key) > 0) {
        return path + ": duplicate entries for key [" + key + "]";
      }
      if (is_set || is_map) seen.push_back(std::move(key));
      if (!schema.Items()) continue;
      if (std::string twice = FindTwice(*schema.Items(), item, path); !twice.empty()) return twice;
    }
  } else if (const Json::Object* const members = value.AsObject()) {
    for (const auto& [name, member] : *members) {
      const StructuralSchema* const field = schema.Property(name);
      if (!field) continue;
      if (std::string twice = FindTwice(*field, member, path + "." + name); !twice.empty()) return twice;
    }
  }
  return {};
}

// An applied configuration must be all of it in the schema, each item once. `ns`: as it says itself.
Check CheckTyped(const ResourceInfo& info, const std::string& ns, const Json& applied) {
  if (!info.schema) return Done();
  const std::vector<std::string> unknown = UnknownFields(*info.schema, applied);
  const std::string why = unknown.empty() ? FindTwice(*info.schema, applied, {})
                                          : Concat({".", unknown[0], ": field not declared in schema"});
  if (why.empty()) return Done();
  return ApiError{500, "",
                  "failed to create typed patch object (" + ns + "/" + std::string(NameOf(applied)) + "; " +
                      info.ApiVersion() + ", Kind=" + info.kind + "): " + why};
}

}  // namespace

Outcome<Written> Writer::Patch(Table& table, const ObjectKey& key, std::string_view media_type, std::string_view body,
                               const WriteOptions& options) {
  if (media_type == kApplyPatch) return Apply(table, key, body, options);
  const std::shared_ptr<const ResourceInfo> info = table.info;
  const RevisionPtr before = storage_.Get(table, key);
  Json object = before ? before->object() : Json::MakeObject();
  if (!before) return NotFound(*info, key.name);
  if (Check patched = ApplyPatch(*info, info->is_custom, object, media_type, body); !patched) return patched.error();
  if (Check kind = CheckKind(*info, object); !kind) return kind.error();
  if (const std::string_view name = NameOf(object); name != key.name) {
    return BadRequest(Concat({"the name of the object (", name}) + ") does not match the name on the URL (" + key.name +
                      ")");
  }
  const std::string_view uid = TextAt(object, {"metadata", "uid"});
  if (!uid.empty() && uid != TextAt(before->object(), {"metadata", "uid"})) {
    const FieldError error = InvalidField("metadata.uid", Concat({"\"", uid}) + "\"", "field is immutable");
    return Invalid(*info, key.name, {error, error});
  }
  std::vector<std::string> warnings;
  if (Check decoded = Decode(*info, object, options, warnings); !decoded) {
    if (!warnings.empty() && options.is_strict) {
      decoded.error().code = 422;
      decoded.error().reason = "Invalid";
    }
    return decoded.error();
  }
  Outcome<Written> written = Store(table, before, std::move(object), options, Tracking::kUpdate);
  if (written) written->warnings = std::move(warnings);
  return written;
}

Outcome<Written> Writer::Apply(Table& table, const ObjectKey& key, std::string_view body, const WriteOptions& options) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  Result<Json> parsed = ParseJson(body);
  if (!parsed) return BadRequest("error decoding YAML: " + parsed.error().message());
  if (!parsed->is_object()) return BadRequest("error decoding YAML: it is no object");
  Json applied = *std::move(parsed);
  if (TextAt(applied, {"kind"}).empty() || TextAt(applied, {"apiVersion"}).empty()) {
    return BadRequest("invalid object type: /, Kind=");
  }
  if (TextAt(applied, {"kind"}) != info->kind || TextAt(applied, {"apiVersion"}) != info->ApiVersion()) {
    return BadRequest("invalid object type: " + std::string(TextAt(applied, {"apiVersion"})) +
                      ", Kind=" + std::string(TextAt(applied, {"kind"})));
  }
  if (Check kind = CheckKind(*info, applied); !kind) return kind.error();
  if (!IsEmptyAt(applied, {"metadata", "managedFields"})) return BadRequest("metadata.managedFields must be nil");
  Json& metadata = applied["metadata"];
  metadata.Erase("managedFields");
  const std::string ns(TextAt(metadata, {"namespace"}));
  SetIfMissing(metadata, "name", key.name);
  if (info->is_namespaced) SetIfMissing(metadata, "namespace", key.ns);
  if (const std::string name(NameOf(applied)); name != key.name) {
    return BadRequest("the name of the object (" + name + ") does not match the name on the URL (" + key.name + ")");
  }
  if (info->is_namespaced && TextAt(metadata, {"namespace"}) != key.ns) {
    return BadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const RevisionPtr before = storage_.Get(table, key);
  if (!before && !options.subresource.empty()) return NotFound(*info, key.name);
  const std::string uid(TextAt(metadata, {"uid"})), version(TextAt(metadata, {"resourceVersion"}));
  if (!before && !uid.empty()) {
    return Conflict(*info, key.name,
                    "uid mismatch: the provided object specified uid " + uid + ", and no existing object was found");
  }
  if (before && !version.empty() && version != std::to_string(before->number())) {
    return ModifiedMeanwhile(*info, key.name);
  }
  if (before && !uid.empty() && uid != TextAt(before->object(), {"metadata", "uid"})) {
    const FieldError error = InvalidField("metadata.uid", "\"" + uid + "\"", "field is immutable");
    return Invalid(*info, key.name, {error, error});
  }
  std::vector<std::string> warnings;
  if (info->is_custom) {
    RemoveNulls(metadata);
    if (Check typed = CheckTyped(*info, ns, applied); !typed) return typed.error();
  } else {
    RemoveNulls(applied);
  }
  KeepOwnPart(*info, options.subresource, applied);
  std::vector<ApplyConflict> conflicts;
  const FieldManager manager{options.manager, "Apply", info->ApiVersion(), options.subresource};
  Json merged = ApplyConfiguration(info->schema.get(), before ? before->object() : Json(), applied, manager,
                                   options.is_forced, storage_.Now(), conflicts);
  if (!conflicts.empty() && !options.is_forced) return AppliedConflicts(conflicts);
  if (!before) return Create(table, key.ns, std::move(merged), options, Tracking::kDone);
  WriteOptions lenient = options;
  lenient.is_strict = lenient.warns = false;
  if (Check decoded = Decode(*info, merged, lenient, warnings); !decoded) return decoded.error();
  return Store(table, before, std::move(merged), options, Tracking::kDone);
}

Outcome<Json> Writer::PatchScale(Table& table, const ObjectKey& key, std::string_view media_type, std::string_view body,
                                 const WriteOptions& options) {
  const RevisionPtr live = storage_.Get(table, key);
  if (!live) return NotFound(*table.info, key.name);
  Json scale = ScaleOf(*table.info, live->object());
  const std::string_view type = media_type == kApplyPatch ? kMergePatch : media_type;
  const ResourceInfo plain;  // A Scale has no lists.
  if (Check patched = ApplyPatch(plain, false, scale, type, body); !patched) return patched.error();
  return UpdateScale(table, key, scale, options);
}

}  // namespace kube::testing
