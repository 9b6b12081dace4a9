// SPDX-License-Identifier: Apache-2.0
// How well a node suits a pod by what is measured of its GPUs and CPUs: the formula of Alnair's UtilSched, with
// fractions where that rounded to 0 or 1. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace grus {

struct CardUse {
  std::string model = {};                      // As the driver names it.
  std::optional<double> used = {}, free = {};  // Memory, in MiB.
  bool is_known() const { return used && free && *used + *free > 0; }
};

struct MeasuredNode {
  std::map<std::string, CardUse> cards = {};  // By UUID.
  std::optional<double> cpu = {};             // Share of its CPUs in use, 0 to 1.
};

// What a GPU of a model counts, by a part of the model's name.
class ModelWeights {
 public:
  ModelWeights();  // K80 6, TITAN X 7, V100 10.
  // "A100=14,H100=20": beside the known ones, or instead. Error kInvalidArgument: another form, or a weight that is not
  // between 0 and 1000.
  static kube::Result<ModelWeights> Parse(std::string_view text);
  // The longest name that is a part of `model`, in any case; the greatest weight if none is: a model that is not listed
  // is newer than those that are.
  double WeightOf(std::string_view model) const;

 private:
  std::map<std::string, double> by_name_;  // In lower case.
};

// 5 x (weight of the model x GiB of a GPU x GPUs / 12) + 10 x (sum over GPUs of used / (used + free)) + 3 x CPU.
// A CPU that is not known counts as idle. Nullopt: nothing is known of any GPU.
std::optional<double> UtilizationScore(const MeasuredNode& node, const ModelWeights& weights);

}  // namespace grus
