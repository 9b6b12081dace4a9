// SPDX-License-Identifier: Apache-2.0
// Scale, and the binding of pods. (A status update is an update like others.)
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/object_rules.h"
#include "clientlib/testing/api_server/writer.h"

namespace kube::testing {
namespace {

const Json* At(const Json& object, const std::vector<std::string>& path) {
  const Json* at = path.empty() ? nullptr : &object;
  for (const std::string& step : path) {
    if (at) at = at->Find(step);
  }
  return at;
}

std::int64_t CountAt(const Json& object, const std::vector<std::string>& path) {
  const Json* const found = At(object, path);
  return found && found->AsInt() ? *found->AsInt() : 0;
}

// The text of spec.selector's matchLabels, as the server writes it: sorted by key.
std::string SelectorText(const Json& object) {
  const Json* const labels = object.At({"spec", "selector", "matchLabels"});
  if (!labels || !labels->AsObject()) return {};
  std::vector<std::string> terms;
  for (const auto& [key, value] : *labels->AsObject()) {
    terms.push_back(key + "=" + (value.AsString() ? *value.AsString() : std::string()));
  }
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const std::string& term : terms) text += (text.empty() ? "" : ",") + term;
  return text;
}

}  // namespace

Json Writer::ScaleOf(const ResourceInfo& info, const Json& object) const {
  Json metadata = Json::MakeObject();
  for (const std::string_view name : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    CopyMember(*object.Find("metadata"), metadata, name);
  }
  Json spec = Json::MakeObject(), status = Json::MakeObject();
  if (const std::int64_t replicas = CountAt(object, info.replicas_path); replicas != 0) spec["replicas"] = replicas;
  status["replicas"] = CountAt(object, info.status_replicas_path);
  std::string selector = info.is_custom ? "" : SelectorText(object);
  if (const Json* const text = At(object, info.selector_path); text && text->AsString()) selector = *text->AsString();
  if (!selector.empty()) status["selector"] = selector;
  return Json::MakeObject({{"kind", "Scale"},
                           {"apiVersion", "autoscaling/v1"},
                           {"metadata", std::move(metadata)},
                           {"spec", std::move(spec)},
                           {"status", std::move(status)}});
}

Outcome<Json> Writer::UpdateScale(Table& table, const ObjectKey& key, const Json& scale, const WriteOptions& options) {
  const std::shared_ptr<const ResourceInfo> info = table.info;
  const RevisionPtr live = storage_.Get(table, key);
  if (!live) return NotFound(*info, key.name);
  if (const std::string_view kind = TextAt(scale, {"kind"}); !kind.empty() && kind != "Scale") {
    return BadRequest(Concat({"expected Scale, got ", kind}));
  }
  if (const std::string name(NameOf(scale)); !name.empty() && name != key.name) {
    return BadRequest("the name of the object (" + name + ") does not match the name on the URL (" + key.name + ")");
  }
  const std::int64_t replicas = IntAt(scale, {"spec", "replicas"});
  if (replicas < 0 && !info->is_custom) {
    return Invalid("autoscaling", "Scale", key.name,
                   {InvalidField("spec.replicas", std::to_string(replicas), "must be greater than or equal to 0")});
  }
  Json object = live->object();
  Json* at = &object;
  for (const std::string& step : info->replicas_path) at = &(*at)[step];
  *at = replicas;
  CopyMember(*scale.Find("metadata"), object["metadata"], "resourceVersion");
  WriteOptions as_scale = options;
  as_scale.subresource = "scale";
  Outcome<Written> written = Store(table, live, std::move(object), as_scale);
  if (!written) return written.error();
  return ScaleOf(*info, written->revision->object());
}

Check Writer::Bind(const ObjectKey& pod, const Json& binding, const WriteOptions& options) {
  Table& pods = *storage_.Find("pods");
  const RevisionPtr live = storage_.Get(pods, pod);
  if (!live) return NotFound(*pods.info, pod.name);
  const Json& old = live->object();
  const std::string_view kind = TextAt(binding, {"target", "kind"}), node = TextAt(binding, {"target", "name"});
  std::vector<FieldError> errors;
  if (!kind.empty() && kind != "Node") {
    errors.push_back({"FieldValueNotSupported",
                      Concat({"Unsupported value: \"", kind}) + R"(": supported values: "Node", "<empty>")",
                      "target.kind"});
  }
  if (node.empty()) errors.push_back(RequiredField("target.name", ""));
  if (!errors.empty()) return Invalid("", "Binding", pod.name, errors);
  const std::string who = "pod " + pod.name;
  if (IsBeingDeleted(old)) {
    return Conflict(*pods.info, pod.name, who + " is being deleted, cannot be assigned to a host", "binding");
  }
  if (const std::string had(TextAt(old, {"spec", "nodeName"})); !had.empty()) {
    return Conflict(*pods.info, pod.name, who + " is already assigned to node \"" + had + "\"", "binding");
  }
  if (!IsEmptyAt(old, {"spec", "schedulingGates"})) {
    return Conflict(*pods.info, pod.name, who + " has non-empty .spec.schedulingGates", "binding");
  }
  const std::string_view uid = TextAt(binding, {"metadata", "uid"}), own_uid = TextAt(old, {"metadata", "uid"});
  if (!uid.empty() && uid != own_uid) {
    return Conflict(*pods.info, pod.name,
                    Concat({"Precondition failed: UID in precondition: ", uid, ", UID in object meta: ", own_uid}),
                    "binding");
  }
  Json object = old;
  object["spec"]["nodeName"] = node;
  if (const Json* const noted = binding.At({"metadata", "annotations"}); noted != nullptr && noted->is_object()) {
    Json& annotations = object["metadata"]["annotations"];
    for (const auto& [key, value] : *noted->AsObject()) annotations[key.view()] = value;
  }
  ObjectIn(object, "status").Erase("nominatedNodeName");  // It was a hint for the scheduler.
  Json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::MakeArray();
  std::erase_if(*conditions.AsArray(), [](const Json& item) { return TextAt(item, {"type"}) == "PodScheduled"; });
  conditions.Append(Json::MakeObject({{"type", "PodScheduled"},
                                      {"status", "True"},
                                      {"lastProbeTime", Json()},
                                      {"lastTransitionTime", storage_.Now()}}));
  if (options.is_dry_run) return Done();
  Commit(pods, std::move(object));
  return Done();
}

Outcome<Written> Writer::Finalize(Table& namespaces, const ObjectKey& key, const Json& object,
                                  const WriteOptions& options) {
  const RevisionPtr live = storage_.Get(namespaces, key);
  if (!live) return NotFound(*namespaces.info, key.name);
  const std::string_view version = TextAt(object, {"metadata", "resourceVersion"});
  if (!version.empty() && version != std::to_string(live->number())) {
    return ModifiedMeanwhile(*namespaces.info, key.name);
  }
  Json changed = live->object();
  const Json* const finalizers = object.At({"spec", "finalizers"});
  if (IsEmpty(finalizers)) {
    ObjectIn(changed, "spec").Erase("finalizers");
  } else {
    ObjectIn(changed, "spec")["finalizers"] = *finalizers;
  }
  WriteOptions as_finalize = options;
  as_finalize.subresource = "finalize";
  return Store(namespaces, live, std::move(changed), as_finalize);
}

}  // namespace kube::testing
