// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/runtime_classes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/quota.h"

namespace kube::testing {
namespace {

// Null: there is none of that name.
RevisionPtr ClassOf(const Json& spec, Storage& storage) {
  return storage.Get(*storage.Find("runtimeclasses.node.k8s.io"),
                     {"", std::string(TextAt(spec, {"runtimeClassName"}))});
}

std::string SetOverhead(const Json& fixed, Json& spec) {
  const Json* const stated = spec.Find("overhead");
  if (!IsEmpty(stated) && ReadAmounts(stated) != ReadAmounts(&fixed)) {
    return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
  }
  spec["overhead"] = fixed;
  return {};
}

std::string AddNodeSelector(const Json::Object& labels, Json& spec) {
  for (const auto& [name, value] : labels) {
    const Json own = ObjectIn(spec, "nodeSelector")[name];
    if (!own.is_null() && own != value) {
      return Concat({"conflict: runtimeClass.scheduling.nodeSelector[", name, "] = ", TextAt(value, {}),
                     "; pod.spec.nodeSelector[", name, "] = ", TextAt(own, {})});
    }
    spec["nodeSelector"][name] = value;
  }
  return {};
}

// Whether `wide` tolerates all that `narrow` does.
bool Includes(const Json& wide, const Json& narrow) {
  if (wide == narrow) return true;
  const std::string_view key = TextAt(wide, {"key"}), op = TextAt(wide, {"operator"});
  const std::string_view effect = TextAt(wide, {"effect"});
  if (key != TextAt(narrow, {"key"}) && !(key.empty() && op == "Exists")) return false;
  if (!effect.empty() && effect != TextAt(narrow, {"effect"})) return false;
  const Json* const seconds = wide.Find("tolerationSeconds");
  if (effect == "NoExecute" && seconds) {
    const Json* const less = narrow.Find("tolerationSeconds");
    if (!less || IntAt(narrow, {"tolerationSeconds"}) > IntAt(wide, {"tolerationSeconds"})) return false;
  }
  if (op == "Exists") return true;
  return (op.empty() || op == "Equal") && TextAt(narrow, {"operator"}) == "Equal" &&
         TextAt(wide, {"value"}) == TextAt(narrow, {"value"});
}

// The pod's tolerations come first. Drops those that another one includes; of equal ones the first stays.
void AddTolerations(const Json::Array& tolerations, Json& spec) {
  Json::Array all = ItemsAt(spec, {"tolerations"}), merged;
  all.insert(all.end(), tolerations.begin(), tolerations.end());
  for (auto it = all.begin(); it != all.end(); ++it) {
    const bool is_redundant =
        std::any_of(merged.begin(), merged.end(), [&](const Json& other) { return Includes(other, *it); }) ||
        std::any_of(it + 1, all.end(), [&](const Json& other) { return other != *it && Includes(other, *it); });
    if (!is_redundant) merged.push_back(*it);
  }
  if (!merged.empty()) spec["tolerations"] = std::move(merged);
}

}  // namespace

std::string ApplyRuntimeClass(Json& spec, Storage& storage) {
  if (!spec.Find("runtimeClassName")) return {};
  const RevisionPtr found = ClassOf(spec, storage);
  if (!found) return Concat({"pod rejected: RuntimeClass \"", TextAt(spec, {"runtimeClassName"}), "\" not found"});
  const Json& runtime = found->object();
  if (const Json* const fixed = runtime.At({"overhead", "podFixed"})) {
    if (std::string why = SetOverhead(*fixed, spec); !why.empty()) return why;
  }
  if (!runtime.Find("scheduling")) return {};
  if (const Json* const labels = runtime.At({"scheduling", "nodeSelector"}); labels && labels->AsObject()) {
    if (std::string why = AddNodeSelector(*labels->AsObject(), spec); !why.empty()) return why;
  }
  AddTolerations(ItemsAt(runtime, {"scheduling", "tolerations"}), spec);
  return {};
}

std::string OverheadViolation(const Json& spec, Storage& storage) {
  if (!spec.Find("overhead")) return {};
  const RevisionPtr found = ClassOf(spec, storage);
  if (found && found->object().Find("overhead")) return {};
  return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
}

}  // namespace kube::testing
