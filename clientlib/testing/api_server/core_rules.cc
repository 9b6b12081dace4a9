// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/kind_rules.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {
namespace {

using Errors = std::vector<FieldError>;

std::string Base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      group = group << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

void SetNamespaceDefaults(Json& object) {
  const std::string name(NameOf(object));
  if (name.empty()) return;
  ObjectIn(ObjectIn(object, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
}

void PrepareNamespace(Json& object, Storage&) {
  Json& finalizers = ObjectIn(object, "spec")["finalizers"];
  bool has_ours = false;
  if (finalizers.AsArray()) {
    for (const Json& item : *finalizers.AsArray()) has_ours = has_ours || item == Json("kubernetes");
  }
  if (!has_ours) finalizers.Append("kubernetes");
  object["status"] = Json::MakeObject({{"phase", "Active"}});
}

void CarryNamespace(const Json& before, Json& object) {
  if (const Json* const finalizers = before.At({"spec", "finalizers"})) {
    ObjectIn(object, "spec")["finalizers"] = *finalizers;
  }
}

void SetServiceDefaults(Json& object) {
  Json& spec = ObjectIn(object, "spec");
  SetIfMissing(spec, "sessionAffinity", "None");
  SetIfMissing(spec, "type", "ClusterIP");
  SetIfMissing(spec, "internalTrafficPolicy", "Cluster");
  Json* const ports = spec.Find("ports");
  if (!ports || !ports->AsArray()) return;
  for (Json& port : *ports->AsArray()) {
    if (!port.is_object()) continue;
    SetIfMissing(port, "protocol", "TCP");
    SetIfMissing(port, "targetPort", IntAt(port, {"port"}));
  }
}

void PrepareService(Json& object, Storage& storage) {
  object["status"] = Json::MakeObject({{"loadBalancer", Json::MakeObject()}});
  Json& spec = ObjectIn(object, "spec");  // After a new member, which may move the others.
  if (TextAt(spec, {"type"}) == "ExternalName") return;
  if (IsEmpty(spec.Find("clusterIP"))) spec["clusterIP"] = storage.MakeClusterIp();
  spec["clusterIPs"] = Json::MakeArray({*spec.Find("clusterIP")});
  const bool is_bare = TextAt(spec, {"clusterIP"}) == "None" && IsEmpty(spec.Find("selector"));
  // A headless service without a selector may have endpoints of both families.
  SetIfMissing(spec, "ipFamilies", is_bare ? Json::MakeArray({"IPv4", "IPv6"}) : Json::MakeArray({"IPv4"}));
  SetIfMissing(spec, "ipFamilyPolicy", is_bare ? "RequireDualStack" : "SingleStack");
}

void CarryService(const Json& before, Json& object) {
  Json& spec = ObjectIn(object, "spec");
  for (const std::string_view field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
    const Json* const was = before.At({"spec", field});
    if (was && IsEmpty(spec.Find(field))) spec[field] = *was;
  }
}

Errors ValidateService(const Json& object, const Json* before) {
  Errors errors;
  const std::string_view address = TextAt(object, {"spec", "clusterIP"});
  if (before && address != TextAt(*before, {"spec", "clusterIP"}) &&
      TextAt(object, {"spec", "type"}) != "ExternalName") {
    errors.push_back(InvalidField("spec.clusterIPs[0]", Concat({"[\"", address}) + "\"]", "may not change once set"));
  }
  if (!before && IsEmptyAt(object, {"spec", "ports"}) && address != "None" &&
      TextAt(object, {"spec", "type"}) != "ExternalName") {
    errors.push_back(RequiredField("spec.ports", ""));
  }
  return errors;
}

void SetSecretDefaults(Json& object) {
  SetIfMissing(object, "type", "Opaque");
  const Json texts = object.Find("stringData") ? *object.Find("stringData") : Json();
  object.Erase("stringData");
  if (!texts.AsObject()) return;
  for (const auto& [key, value] : *texts.AsObject()) {
    if (value.AsString()) ObjectIn(object, "data")[key] = Base64(*value.AsString());
  }
}

Errors ValidateImmutable(const Json& object, const Json* before) {
  Errors errors;
  if (!before || !IsTrueAt(*before, {"immutable"})) return errors;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!IsTrueAt(object, {"immutable"})) errors.push_back(ForbiddenField("immutable", kWhy));
  for (const char* const field : {"data", "binaryData"}) {
    if (!Same(object.Find(field), before->Find(field))) errors.push_back(ForbiddenField(field, kWhy));
  }
  return errors;
}

Errors ValidateSecret(const Json& object, const Json* before) {
  Errors errors = ValidateImmutable(object, before);
  if (before && !Same(object.Find("type"), before->Find("type"))) {
    errors.push_back(InvalidField("type", ToText(*object.Find("type")), "field is immutable"));
  }
  return errors;
}

void SetClaimDefaults(Json& object) { SetIfMissing(ObjectIn(object, "spec"), "volumeMode", "Filesystem"); }
void PrepareClaim(Json& object, Storage&) { object["status"] = Json::MakeObject({{"phase", "Pending"}}); }

void PrepareBudget(Json& object, Storage&) {
  object["status"] =
      Json::MakeObject({{"disruptionsAllowed", 0}, {"currentHealthy", 0}, {"desiredHealthy", 0}, {"expectedPods", 0}});
}

void SetPriorityClassDefaults(Json& object) { SetIfMissing(object, "preemptionPolicy", "PreemptLowerPriority"); }

Errors ValidatePriorityClass(const Json& object, const Json* before) {
  Errors errors;
  if (before && !Same(object.Find("value"), before->Find("value"))) {
    errors.push_back(ForbiddenField("value", "may not be changed in an update."));
  }
  return errors;
}

Errors ValidateLease(const Json& object, const Json*) {
  Errors errors;
  const std::int64_t seconds = IntAt(object, {"spec", "leaseDurationSeconds"}, 1);
  if (seconds <= 0) {
    errors.push_back(InvalidField("spec.leaseDurationSeconds", std::to_string(seconds), "must be greater than 0"));
  }
  return errors;
}

}  // namespace

const KindRules kLeaseRules{nullptr, nullptr, nullptr, ValidateLease};
const KindRules kNamespaceRules{SetNamespaceDefaults, PrepareNamespace, CarryNamespace, nullptr};
const KindRules kServiceRules{SetServiceDefaults, PrepareService, CarryService, ValidateService};
const KindRules kSecretRules{SetSecretDefaults, nullptr, nullptr, ValidateSecret};
const KindRules kConfigMapRules{nullptr, nullptr, nullptr, ValidateImmutable};
const KindRules kClaimRules{SetClaimDefaults, PrepareClaim, nullptr, nullptr};
const KindRules kBudgetRules{nullptr, PrepareBudget, nullptr, nullptr};
const KindRules kPriorityClassRules{SetPriorityClassDefaults, nullptr, nullptr, ValidatePriorityClass};

}  // namespace kube::testing
