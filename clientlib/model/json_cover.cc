// SPDX-License-Identifier: Apache-2.0
// IsCovered() of json.h.
#include <algorithm>
#include <array>
#include <optional>

#include "clientlib/model/json.h"
#include "clientlib/model/quantity.h"

namespace kube {
namespace {

// Members that tell the items of a list apart, as in the API's merge keys.
constexpr std::string_view kItemKeys[] = {"name", "key", "containerPort", "mountPath", "port"};
// Below these, strings and numbers are quantities.
constexpr std::string_view kQuantityFields[] = {"requests", "limits",    "capacity", "allocatable",
                                                "overhead", "sizeLimit", "hard",     "divisor"};

bool IsEmpty(const Json& json) {
  if (const bool* b = json.AsBool()) return !*b;
  if (const std::int64_t* i = json.AsInt()) return *i == 0;
  if (const double* d = json.AsDouble()) return *d == 0;
  if (const std::string* s = json.AsString()) return s->empty();
  if (const Json::Array* a = json.AsArray()) return a->empty();
  if (const Json::Object* o = json.AsObject()) {
    return std::all_of(o->begin(), o->end(), [](const Json::Member& member) { return IsEmpty(member.second); });
  }
  return true;
}

std::optional<Quantity> AsQuantity(const Json& json) {
  const std::string* const text = json.AsString();
  if (!text && !json.AsInt() && !json.AsDouble()) return std::nullopt;
  Result<Quantity> parsed = ParseQuantity(text ? *text : ToText(json));
  return parsed ? std::optional<Quantity>(*parsed) : std::nullopt;
}

bool AreEqualScalars(const Json& wanted, const Json& live, bool is_quantity) {
  if (wanted == live) return true;
  if (is_quantity) {
    const std::optional<Quantity> a = AsQuantity(wanted), b = AsQuantity(live);
    return a && b && *a == *b;
  }
  // 1 and 1.0 are the same number.
  if (wanted.AsInt() && live.AsDouble()) return static_cast<double>(*wanted.AsInt()) == *live.AsDouble();
  if (wanted.AsDouble() && live.AsInt()) return static_cast<double>(*live.AsInt()) == *wanted.AsDouble();
  return false;
}

bool Covers(const Json& wanted, const Json& live, bool is_quantity);

// The member that identifies the items of `items`; empty if there is none.
std::string_view ItemKey(const Json::Array& items) {
  for (const std::string_view key : kItemKeys) {
    if (!items.empty() && std::all_of(items.begin(), items.end(), [&](const Json& i) { return i.Find(key); })) {
      return key;
    }
  }
  return {};
}

bool CoversList(const Json::Array& wanted, const Json::Array& live, bool is_quantity) {
  if (const std::string_view key = ItemKey(wanted); !key.empty()) {
    // More than one item may have the same key: two mounts of one volume, two tolerations of one taint.
    // Each search starts behind the item found last, so that lists of the same order take linear time.
    auto next = live.begin();
    return std::all_of(wanted.begin(), wanted.end(), [&](const Json& item) {
      const auto is_covering = [&](const Json& other) {
        const Json* const value = other.Find(key);
        return value && *value == *item.Find(key) && Covers(item, other, is_quantity);
      };
      auto found = std::find_if(next, live.end(), is_covering);
      if (found == live.end()) {
        found = std::find_if(live.begin(), next, is_covering);
        if (found == next) return false;
      }
      next = found + 1;
      return true;
    });
  }
  return wanted.size() == live.size() &&
         std::equal(wanted.begin(), wanted.end(), live.begin(),
                    [&](const Json& a, const Json& b) { return Covers(a, b, is_quantity); });
}

bool Covers(const Json& wanted, const Json& live, bool is_quantity) {
  if (const Json::Object* members = wanted.AsObject(); members && live.is_object()) {
    std::size_t next = 0;
    return std::all_of(members->begin(), members->end(), [&](const Json::Member& member) {
      const auto& [key, value] = member;
      const Json* const other = live.FindFrom(next, key);
      if (!other) return IsEmpty(value);
      return Covers(value, *other, is_quantity || std::ranges::count(kQuantityFields, key.view()) > 0);
    });
  }
  if (wanted.AsArray() && live.AsArray()) return CoversList(*wanted.AsArray(), *live.AsArray(), is_quantity);
  return AreEqualScalars(wanted, live, is_quantity) || (live.is_null() && IsEmpty(wanted));
}

}  // namespace

bool IsCovered(const Json& wanted, const Json& live) { return Covers(wanted, live, false); }

}  // namespace kube
