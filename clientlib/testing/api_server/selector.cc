// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/selector.h"

#include <algorithm>
#include <cstdlib>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string AsText(const Json* value) {
  if (!value || value->is_null()) return {};
  return value->AsString() ? *value->AsString() : ToText(*value);
}

bool IsSupported(const ResourceInfo& info, std::string_view field) {
  if (field == "metadata.name") return true;
  if (field == "metadata.namespace") return info.is_namespaced || !info.is_custom;
  const auto& more = info.selectable_fields;
  return std::find(more.begin(), more.end(), field) != more.end();
}

bool Satisfies(const LabelRequirement& wanted, const Json* labels) {
  const Json* const value = labels ? labels->Find(wanted.key) : nullptr;
  const std::string* const text = value ? value->AsString() : nullptr;
  const bool is_listed = text && std::find(wanted.values.begin(), wanted.values.end(), *text) != wanted.values.end();
  switch (wanted.op) {
    case SelectorOperator::kIn: return is_listed;
    case SelectorOperator::kNotIn: return !is_listed;
    case SelectorOperator::kExists: return value != nullptr;
    case SelectorOperator::kDoesNotExist: return value == nullptr;
  }
  return false;
}

}  // namespace

Outcome<Selector> Selector::Parse(const ResourceInfo& info, std::string_view labels, std::string_view fields) {
  Selector selector;
  if (!labels.empty()) {
    if (labels.find('(') != std::string_view::npos && labels.find(')') == std::string_view::npos) {
      return BadRequest("unable to parse requirement: found '', expected: ',' or ')'");
    }
    std::string rest;
    for (const std::string& term : Split(labels, ',')) {
      const std::size_t at = term.find_first_of("<>");
      if (at == std::string::npos) {
        rest += (rest.empty() ? "" : ",") + term;
      } else {
        selector.bounds_.push_back({term.substr(0, at), std::atoll(term.c_str() + at + 1), term[at] == '>'});
      }
    }
    Result<LabelSelector> parsed = ParseLabelSelector(rest);
    if (!parsed) return BadRequest("unable to parse requirement: " + parsed.error().message());
    selector.labels_ = *std::move(parsed);
  }
  for (const std::string& text : Split(fields, ',')) {
    Term term;
    std::size_t at = text.find("!=");
    std::size_t length = 2;
    if (at != std::string::npos) {
      term.is_negated = true;
    } else if ((at = text.find('=')) != std::string::npos) {
      length = text.substr(at).starts_with("==") ? 2 : 1;
    } else {
      return BadRequest(Concat({"invalid selector: '", fields}) + "'; can't understand '" + text + "'");
    }
    const std::string field = text.substr(0, at);
    if (!IsSupported(info, field)) {
      const bool has_more = info.is_custom || !info.selectable_fields.empty();
      return BadRequest(has_more ? Concat({"field label not supported: ", field})
                                 : Concat({"\"", field,
                                           "\" is not a known field selector: only \"metadata.name\", "
                                           "\"metadata.namespace\""}));
    }
    term.path = field == "source" ? std::vector<std::string>{field, "component"} : Split(field, '.');
    term.value = text.substr(at + length);
    selector.fields_.push_back(std::move(term));
  }
  return selector;
}

bool Selector::Matches(const Json& object) const {
  if ((!labels_.empty() || !bounds_.empty()) && !MatchesLabels(object)) return false;
  return std::all_of(fields_.begin(), fields_.end(), [&](const Term& term) {
    const Json* value = &object;
    for (const std::string& step : term.path) {
      if (value) value = value->Find(step);
    }
    std::string text = AsText(value);
    if (text.empty() && term.path.back() == "unschedulable") text = "false";
    return (text == term.value) != term.is_negated;
  });
}

bool Selector::MatchesLabels(const Json& object) const {
  const Json* const labels = object.At({"metadata", "labels"});
  for (const Bound& bound : bounds_) {
    const Json* const found = labels ? labels->Find(bound.key) : nullptr;
    if (!found || !found->AsString()) return false;
    const std::int64_t value = std::atoll(found->AsString()->c_str());
    if (bound.is_lower ? value <= bound.limit : value >= bound.limit) return false;
  }
  for (const auto& [key, value] : labels_.match_labels) {
    const Json* const found = labels ? labels->Find(key.view()) : nullptr;
    if (!found || !found->AsString() || *found->AsString() != value.view()) return false;
  }
  return std::all_of(labels_.match_expressions.begin(), labels_.match_expressions.end(),
                     [&](const LabelRequirement& wanted) { return Satisfies(wanted, labels); });
}

}  // namespace kube::testing
