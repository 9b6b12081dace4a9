// SPDX-License-Identifier: Apache-2.0
// labelSelector and fieldSelector of a list or watch, applied to objects as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/json.h"
#include "clientlib/model/label_selector.h"
#include "clientlib/testing/api_server/api_error.h"

namespace kube::testing {

class Selector {
 public:
  Selector() = default;
  static Outcome<Selector> Parse(const ResourceInfo& info, std::string_view labels, std::string_view fields);

  bool empty() const { return labels_.empty() && bounds_.empty() && fields_.empty(); }
  bool Matches(const Json& object) const;

 private:
  struct Term {
    std::vector<std::string> path;
    std::string value;
    bool is_negated = false;
  };
  struct Bound {  // key>limit, key<limit
    std::string key;
    std::int64_t limit = 0;
    bool is_lower = false;
  };
  bool MatchesLabels(const Json& object) const;

  LabelSelector labels_;
  std::vector<Bound> bounds_;
  std::vector<Term> fields_;
};

}  // namespace kube::testing
