// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/label_selector.h"

#include <algorithm>

#include "clientlib/model/field.h"

namespace kube {
namespace {

// In the schemas of CRDs; Kubernetes has no limit. Without one, a rule over the list may cost more than it allows.
constexpr std::int64_t kMostRequirements = 128;

// Splits a selector into words and the signs between them.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // The next word or sign; empty at the end.
  std::string_view Next() {
    const std::string_view token = Peek();
    at_ += token.size();
    return token;
  }
  std::string_view Peek() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view sign : {"==", "!=", "=", "!", ",", "(", ")"}) {
      if (rest.starts_with(sign)) return sign;
    }
    const auto end = std::find_if(rest.begin(), rest.end(), [](char c) {
      return IsSpace(c) || std::string_view("=!,()").find(c) != std::string_view::npos;
    });
    return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  }
  bool Take(std::string_view sign) {
    if (Peek() != sign) return false;
    Next();
    return true;
  }
  std::size_t position() const { return at_; }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Label keys and values: letters, digits and "-_./".
bool IsWord(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

// Reads "(a,b,)": a value may be empty.
bool ReadValues(Scanner& scanner, std::vector<std::string>& values) {
  if (!scanner.Take("(")) return false;
  for (;;) {
    const std::string_view value = IsWord(scanner.Peek()) ? scanner.Next() : std::string_view();
    values.emplace_back(value);
    if (scanner.Take(")")) return true;
    if (!scanner.Take(",")) return false;
  }
}

bool ReadRequirement(Scanner& scanner, LabelSelector& selector) {
  const bool is_negated = scanner.Take("!");
  if (!IsWord(scanner.Peek())) return false;
  const std::string key(scanner.Next());
  const std::string_view next = scanner.Peek();
  if (is_negated || next.empty() || next == ",") {
    const auto op = is_negated ? SelectorOperator::kDoesNotExist : SelectorOperator::kExists;
    selector.match_expressions.push_back({key, op, {}});
    return true;
  }
  const std::string_view sign = scanner.Next();
  if (sign == "=" || sign == "==" || sign == "!=") {
    const std::string value(IsWord(scanner.Peek()) ? scanner.Next() : std::string_view());
    if (sign == "!=") {
      selector.match_expressions.push_back({key, SelectorOperator::kNotIn, {value}});
    } else if (!selector.match_labels.emplace(key, value)) {
      selector.match_expressions.push_back({key, SelectorOperator::kIn, {value}});
    }
    return true;
  }
  if (sign != "in" && sign != "notin") return false;
  LabelRequirement requirement{key, sign == "in" ? SelectorOperator::kIn : SelectorOperator::kNotIn, {}};
  if (!ReadValues(scanner, requirement.values)) return false;
  selector.match_expressions.push_back(std::move(requirement));
  return true;
}

std::string Join(const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text.append(i == 0 ? "" : ",").append(values[i]);
  return text;  // A value may be empty: "(,a)".
}

}  // namespace

std::span<const std::string_view> EnumNames(SelectorOperator) {
  static constexpr std::string_view kNames[] = {"In", "NotIn", "Exists", "DoesNotExist"};
  return kNames;
}

std::span<const FieldInfo> LabelRequirement::Fields() {
  using T = LabelRequirement;
  static constexpr FieldInfo kFields[] = {
      Field<&T::key>("key", {.doc = "The label's key.", .required = true}),
      Field<&T::op>("operator", {.doc = "How the label relates to the values.", .required = true}),
      Field<&T::values>("values", {.doc = "For In and NotIn.", .max_items = kMostRequirements, .list_type = "atomic"}),
  };
  return kFields;
}

std::span<const FieldInfo> LabelSelector::Fields() {
  using T = LabelSelector;
  static constexpr FieldInfo kFields[] = {
      Field<&T::match_labels>("matchLabels", {.doc = "Labels that must have these values."}),
      Field<&T::match_expressions>(
          "matchExpressions",
          {.doc = "Requirements that must all hold.", .max_items = kMostRequirements, .list_type = "atomic"}),
  };
  return kFields;
}

bool LabelRequirement::Matches(const StringMap& labels) const {
  const auto label = labels.find(key);
  const bool is_there = label != labels.end();
  const bool is_listed =
      is_there && std::any_of(values.begin(), values.end(), [&](const auto& v) { return label->second == v; });
  switch (op) {
    case SelectorOperator::kIn: return is_listed;
    case SelectorOperator::kNotIn: return !is_listed;
    case SelectorOperator::kExists: return is_there;
    case SelectorOperator::kDoesNotExist: return !is_there;
  }
  return false;
}

bool LabelSelector::Matches(const StringMap& labels) const {
  for (const auto& [key, value] : match_labels) {
    const auto label = labels.find(key);
    if (label == labels.end() || label->second != value) return false;
  }
  return std::all_of(match_expressions.begin(), match_expressions.end(),
                     [&](const LabelRequirement& requirement) { return requirement.Matches(labels); });
}

std::string ToText(const LabelSelector& selector) {
  std::string text;
  const auto add = [&](const std::string& part) { text.append(text.empty() ? "" : ",").append(part); };
  for (const auto& [key, value] : selector.match_labels) add(key + "=" + value.str());
  for (const LabelRequirement& requirement : selector.match_expressions) {
    switch (requirement.op) {
      case SelectorOperator::kIn: add(requirement.key + " in (" + Join(requirement.values) + ")"); break;
      case SelectorOperator::kNotIn: add(requirement.key + " notin (" + Join(requirement.values) + ")"); break;
      case SelectorOperator::kExists: add(requirement.key); break;
      case SelectorOperator::kDoesNotExist: add("!" + requirement.key); break;
    }
  }
  return text;
}

Result<LabelSelector> ParseLabelSelector(std::string_view text) {
  LabelSelector selector;
  Scanner scanner(text);
  if (scanner.Peek().empty()) return selector;
  for (;;) {
    if (!ReadRequirement(scanner, selector)) break;
    if (scanner.Peek().empty()) return selector;
    if (!scanner.Take(",")) break;
  }
  return Error(ErrorCode::kInvalidArgument, "label selector \"" + std::string(text.substr(0, 80)) +
                                                "\" is invalid at byte " + std::to_string(scanner.position()));
}

}  // namespace kube
