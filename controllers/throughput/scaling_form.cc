// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/scaling_form.h"

#include <algorithm>
#include <cmath>

namespace grus {
namespace {

// On one node, forms with the same intra growth are the same form: list no intra growth more than twice, or it would
// outvote the others.
constexpr ScalingForm kForms[] = {
    {"ring", IntraGrowth::kRing, InterGrowth::kRing},
    {"constant", IntraGrowth::kRing, InterGrowth::kConstant},
    {"tree", IntraGrowth::kLogarithmic, InterGrowth::kLogNodes},
    {"flat-tree", IntraGrowth::kLogarithmic, InterGrowth::kLogReplicas},
    {"linear", IntraGrowth::kLinear, InterGrowth::kLinear},
};

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

double Ring(double count) { return 2 * (count - 1) / count; }

// How long synchronising takes, relative to two replicas or nodes: base + sum of growth * times.
struct Growth {
  double base = 1;
  double intra = 0, node = 0, local = 0;  // Factors of the growths kIntraGrowth, kNodeGrowth, kLocalGrowth.
};

Growth IntraNode(IntraGrowth kind, double replicas) {
  switch (kind) {
    case IntraGrowth::kRing: return {.base = Ring(replicas)};
    case IntraGrowth::kLogarithmic: return {.intra = std::log2(replicas / 2)};
    case IntraGrowth::kLinear: return {.intra = replicas - 2};
  }
  return {};
}

Growth InterNode(InterGrowth kind, double nodes, double replicas) {
  const double local = std::log2(replicas / nodes);
  switch (kind) {
    case InterGrowth::kRing: return {.base = Ring(nodes), .local = local};
    case InterGrowth::kLogNodes: return {.node = std::log2(nodes / 2), .local = local};
    case InterGrowth::kLogReplicas: return {.node = std::log2(replicas / 2)};
    case InterGrowth::kConstant: return {.local = local};
    case InterGrowth::kLinear: return {.node = replicas - 2};
  }
  return {};
}

}  // namespace

std::span<const ScalingForm> ScalingForms() { return kForms; }

bool Uses(const ScalingForm& form, Parameter parameter) {
  switch (parameter) {
    case kIntraGrowth: return form.intra != IntraGrowth::kRing;
    case kNodeGrowth: return form.inter != InterGrowth::kRing && form.inter != InterGrowth::kConstant;
    case kLocalGrowth: return form.inter != InterGrowth::kLogReplicas && form.inter != InterGrowth::kLinear;
    default: return parameter < kParameterCount;
  }
}

double OverlapOf(double logit) { return 1 + 9 * Logistic(logit); }
double GrowthOf(double logit) { return Logistic(logit); }

LogStep LogStepSeconds(const ScalingForm& form, const Parameters& parameters, const JobSize& size,
                       double reference_batch, double batch_effect) {
  LogStep step;
  const double fixed = std::exp(parameters[kFixed]);
  const double batch = std::exp(parameters[kPerSample]) * size.local_batch_size / reference_batch;
  const double log_compute = std::log(fixed + batch) + batch_effect;
  step.gradient[kFixed] = fixed / (fixed + batch);
  step.gradient[kPerSample] = batch / (fixed + batch);
  if (size.replicas <= 1) {
    step.value = log_compute;
    return step;
  }

  const bool is_one_node = size.nodes <= 1;
  const Growth growth =
      is_one_node ? IntraNode(form.intra, size.replicas) : InterNode(form.inter, size.nodes, size.replicas);
  const double intra = GrowthOf(parameters[kIntraGrowth]);
  const double node = GrowthOf(parameters[kNodeGrowth]);
  const double local = GrowthOf(parameters[kLocalGrowth]);
  const double times = growth.base + growth.intra * intra + growth.node * node + growth.local * local;
  const double log_sync = parameters[is_one_node ? kIntra : kInter] + std::log(times);

  // Take the larger one out of the powers, or they would overflow.
  const double overlap = OverlapOf(parameters[kOverlap]);
  const double largest = std::max(log_compute, log_sync);
  const double compute_power = std::exp(overlap * (log_compute - largest));
  const double sync_power = std::exp(overlap * (log_sync - largest));
  const double sum = compute_power + sync_power;
  step.value = largest + std::log(sum) / overlap;
  step.compute_share = compute_power / sum;

  const double sync_share = sync_power / sum;
  step.gradient[kFixed] *= step.compute_share;
  step.gradient[kPerSample] *= step.compute_share;
  step.gradient[is_one_node ? kIntra : kInter] = sync_share;
  step.gradient[kIntraGrowth] = sync_share * growth.intra * intra * (1 - intra) / times;
  step.gradient[kNodeGrowth] = sync_share * growth.node * node * (1 - node) / times;
  step.gradient[kLocalGrowth] = sync_share * growth.local * local * (1 - local) / times;
  const double by_overlap =
      (step.compute_share * (log_compute - largest) + sync_share * (log_sync - largest) - std::log(sum) / overlap) /
      overlap;
  step.gradient[kOverlap] = by_overlap * (overlap - 1) * (10 - overlap) / 9;
  return step;
}

}  // namespace grus
