// SPDX-License-Identifier: Apache-2.0
// Writer::Patch(): JSON, merge and strategic merge patches.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/custom_resources.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/object_rules.h"
#include "clientlib/testing/api_server/patches.h"
#include "clientlib/testing/api_server/writer.h"

namespace kube::testing {
namespace {

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicMergePatch = "application/strategic-merge-patch+json";

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

}  // namespace

Outcome<Written> Writer::Patch(Table& table, const ObjectKey& key, std::string_view media_type, std::string_view body,
                               const WriteOptions& options) {
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
  Outcome<Written> written = Store(table, before, std::move(object), options);
  if (written) written->warnings = std::move(warnings);
  return written;
}

Outcome<Json> Writer::PatchScale(Table& table, const ObjectKey& key, std::string_view media_type, std::string_view body,
                                 const WriteOptions& options) {
  const RevisionPtr live = storage_.Get(table, key);
  if (!live) return NotFound(*table.info, key.name);
  Json scale = ScaleOf(*table.info, live->object());
  const ResourceInfo plain;  // A Scale has no lists.
  if (Check patched = ApplyPatch(plain, false, scale, media_type, body); !patched) return patched.error();
  return UpdateScale(table, key, scale, options);
}

}  // namespace kube::testing
