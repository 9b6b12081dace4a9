// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/limit_ranges.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/kind_rules.h"
#include "clientlib/testing/api_server/quota.h"

namespace kube::testing {
namespace {

constexpr std::string_view kContainerLists[] = {"containers", "initContainers"};

std::vector<RevisionPtr> RangesFor(const Json& pod, Storage& storage) {
  std::vector<RevisionPtr> ranges;
  for (const auto& [key, revision] : storage.Find("limitranges")->objects) {
    if (key.ns == TextAt(pod, {"metadata", "namespace"})) ranges.push_back(revision);
  }
  return ranges;
}

void CopyMissing(const Json* from, Json& to) {
  if (!from || !from->AsObject()) return;
  for (const auto& [name, amount] : *from->AsObject()) SetIfMissing(to, name, amount);
}

// Defaults that a range does not state: the limit is the maximum, the request is the limit, else the minimum.
void SetDefaults(Json& range) {
  Json* const limits = ObjectIn(range, "spec").Find("limits");
  if (!limits || !limits->AsArray()) return;
  for (Json& item : *limits->AsArray()) {
    if (TextAt(item, {"type"}) != "Container") continue;
    // Create both members first: a new member moves the others.
    for (const std::string_view field : {"default", "defaultRequest"}) ObjectIn(item, field);
    CopyMissing(item.Find("max"), *item.Find("default"));
    CopyMissing(item.Find("default"), *item.Find("defaultRequest"));
    CopyMissing(item.Find("min"), *item.Find("defaultRequest"));
    for (const std::string_view field : {"default", "defaultRequest"}) {
      if (IsEmpty(item.Find(field))) item.Erase(field);
    }
  }
}

struct Stated {
  ResourceList requests, limits;
};

// The amounts that items of `type` state. For a pod: the sum over its containers; empty for types that pods do not
// have.
std::vector<Stated> StatedBy(std::string_view type, const Json& pod) {
  if (type == "Pod") return {{TotalOf(pod, "requests"), TotalOf(pod, "limits")}};
  std::vector<Stated> stated;
  if (type != "Container") return stated;
  for (const std::string_view list : kContainerLists) {
    for (const Json& container : ItemsAt(pod, {"spec", list})) {
      stated.push_back(
          {ReadAmounts(container.At({"resources", "requests"})), ReadAmounts(container.At({"resources", "limits"}))});
    }
  }
  return stated;
}

// Checks one resource. Empty: the bound is kept.
std::string BelowMinimum(std::string_view type, std::string_view name, const Quantity& least, const Stated& stated) {
  const Quantity* const request = FindResource(stated.requests, name);
  const Quantity* const limit = FindResource(stated.limits, name);
  const std::string rule = Concat({"minimum ", name, " usage per ", type, " is ", ToText(least)});
  if (!request) return rule + ".  No request is specified";
  if (*request < least) return rule + ", but request is " + ToText(*request);
  return limit && *limit < least ? rule + ", but limit is " + ToText(*limit) : "";
}
std::string AboveMaximum(std::string_view type, std::string_view name, const Quantity& most, const Stated& stated) {
  const Quantity* const request = FindResource(stated.requests, name);
  const Quantity* const limit = FindResource(stated.limits, name);
  const std::string rule = Concat({"maximum ", name, " usage per ", type, " is ", ToText(most)});
  if (!limit) return rule + ".  No limit is specified";
  if (*limit > most) return rule + ", but limit is " + ToText(*limit);
  return request && *request > most ? rule + ", but request is " + ToText(*request) : "";
}

// Each once, as Go's aggregate of errors prints them: "a" or "[a, b]".
std::string Joined(const std::vector<std::string>& violations) {
  std::vector<std::string_view> seen;
  std::string text;
  for (const std::string& violation : violations) {
    if (violation.empty() || std::find(seen.begin(), seen.end(), violation) != seen.end()) continue;
    seen.push_back(violation);
    text += (text.empty() ? "" : ", ") + violation;
  }
  return seen.size() > 1 ? "[" + text + "]" : text;
}

std::string Violation(const Json& range, const Json& pod) {
  std::vector<std::string> violations;
  for (const Json& item : ItemsAt(range, {"spec", "limits"})) {
    const std::string_view type = TextAt(item, {"type"});
    for (const Stated& stated : StatedBy(type, pod)) {
      for (const auto& [name, least] : ReadAmounts(item.Find("min"))) {
        violations.push_back(BelowMinimum(type, name.view(), least, stated));
      }
      for (const auto& [name, most] : ReadAmounts(item.Find("max"))) {
        violations.push_back(AboveMaximum(type, name.view(), most, stated));
      }
    }
  }
  return Joined(violations);
}

void FillIn(const Json& item, std::string_view field, Json& container, std::string_view kind) {
  const Json* const amounts = item.Find(field);
  if (!IsEmpty(amounts)) CopyMissing(amounts, ObjectIn(ObjectIn(container, "resources"), kind));
}

}  // namespace

const KindRules kLimitRangeRules{SetDefaults};

void SetDefaultResources(Json& pod, Storage& storage) {
  for (const RevisionPtr& range : RangesFor(pod, storage)) {
    for (const Json& item : ItemsAt(range->object(), {"spec", "limits"})) {
      if (TextAt(item, {"type"}) != "Container") continue;
      for (const std::string_view list : kContainerLists) {
        Json* const containers = ObjectIn(pod, "spec").Find(list);
        if (!containers || !containers->AsArray()) continue;
        for (Json& container : *containers->AsArray()) {
          FillIn(item, "default", container, "limits");
          FillIn(item, "defaultRequest", container, "requests");
        }
      }
    }
  }
}

std::string LimitRangeViolation(const Json& pod, Storage& storage) {
  for (const RevisionPtr& range : RangesFor(pod, storage)) {
    if (std::string violation = Violation(range->object(), pod); !violation.empty()) return violation;
  }
  return {};
}

}  // namespace kube::testing
