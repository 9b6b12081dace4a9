// SPDX-License-Identifier: Apache-2.0
// ParseLabelSelector(), and LabelSelector as JSON, on labels of the selector's own. Rules: a selector written
// and read again is equal and matches the same; what asks for labels only matches these labels.
#include "clientlib/model/json_reader.h"
#include "clientlib/model/label_selector.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  if (const kube::Result<kube::LabelSelector> selector = kube::ReadText<kube::LabelSelector>(text)) {
    static_cast<void>(selector->Matches(selector->match_labels));
    static_cast<void>(kube::ParseLabelSelector(kube::ToText(*selector)));
  }

  const kube::Result<kube::LabelSelector> selector = kube::ParseLabelSelector(text);
  if (!selector) return 0;
  const kube::Result<kube::LabelSelector> again = kube::ParseLabelSelector(kube::ToText(*selector));
  fuzz::Require(again.ok(), "what was written can be read");
  fuzz::Require(*again == *selector, "what is read again is equal");

  // The labels asked for, and one of the values of each requirement.
  kube::StringMap labels = selector->match_labels;
  fuzz::Require(selector->Matches(labels) || !selector->match_expressions.empty(), "labels asked for are matched");
  for (const kube::LabelRequirement& requirement : selector->match_expressions) {
    labels.emplace(requirement.key, requirement.values.empty() ? "" : requirement.values.front());
    fuzz::Require(requirement.Matches(labels) != (requirement.op == kube::SelectorOperator::kDoesNotExist) ||
                      requirement.op == kube::SelectorOperator::kIn || requirement.op == kube::SelectorOperator::kNotIn,
                  "a label that is there exists");
  }
  fuzz::Require(selector->Matches(labels) == again->Matches(labels), "both match the same");
  return 0;
}
