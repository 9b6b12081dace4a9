// SPDX-License-Identifier: Apache-2.0
// How long one training step takes, as a formula with a few parameters.
//
//   step = (compute^g + sync^g)^(1/g)       g in [1, 10]: 1 is no overlap of the two, 10 nearly hides the shorter
//   compute = fixed + per_sample * local batch size
//   sync = 0 on one replica; intra * f(replicas) on one node; inter * h(nodes, replicas) on several
//
// as in Pollux (Qiao et al., OSDI 2021). The forms differ in f and h, that is in what synchronising costs as the job
// grows: a ring all-reduce moves 2(n-1)/n of the gradients over each link, a tree takes log2(n) rounds, a parameter
// server serves all replicas in turn. No form grows faster than in proportion to the replicas: faster growth comes from
// a change of hardware that no formula predicts, and must show as a bad fit.
//
// Pure functions. Parameters are logarithms (of seconds) or logits, so that any real number is allowed.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace grus {

// A size to measure or predict. Replicas are spread evenly over the nodes, one GPU each.
struct JobSize {
  int nodes = 1;
  int replicas = 1;
  double local_batch_size = 1;  // Samples per replica and step.

  friend bool operator==(const JobSize&, const JobSize&) = default;
};

// Indices of a form's parameters. A form that has no use for one ignores it.
enum Parameter : std::size_t {
  kFixed,        // log of the compute time that the batch size does not change, in s
  kPerSample,    // log of the compute time of a batch of the reference size, less the fixed part, in s
  kIntra,        // log of the time to synchronise two replicas on one node, in s
  kInter,        // log of the time to synchronise two nodes with one replica each, in s
  kOverlap,      // logit of (g - 1) / 9
  kIntraGrowth,  // logit of how much each doubling (or each replica) on one node adds, as a share of kIntra
  kNodeGrowth,   // the same for nodes (or replicas on several nodes), as a share of kInter
  kLocalGrowth,  // the same for each doubling of the replicas per node
  kParameterCount
};
using Parameters = std::array<double, kParameterCount>;

enum class IntraGrowth { kRing, kLogarithmic, kLinear };
enum class InterGrowth { kRing, kLogNodes, kLogReplicas, kConstant, kLinear };

struct ScalingForm {
  std::string_view name;
  IntraGrowth intra;
  InterGrowth inter;
};

// All forms that are tried.
std::span<const ScalingForm> ScalingForms();

// Whether `form` has a use for `parameter`.
bool Uses(const ScalingForm& form, Parameter parameter);

// Overlap exponent of the logit kOverlap, and growth of the logits k...Growth.
double OverlapOf(double logit);
double GrowthOf(double logit);

struct LogStep {
  double value = 0;          // Natural logarithm of the step time in s.
  double compute_share = 1;  // d value / d log compute: how much of the step is computing; the rest is synchronising.
  Parameters gradient{};     // d value / d parameter
};

// `batch_effect` is added to log compute: how far compute time at this batch size is off the straight line.
// `reference_batch` is the batch size that kPerSample is about.
LogStep LogStepSeconds(const ScalingForm& form, const Parameters& parameters, const JobSize& size,
                       double reference_batch, double batch_effect);

}  // namespace grus
