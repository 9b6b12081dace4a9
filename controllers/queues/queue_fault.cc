// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_fault.h"

namespace grus {

std::string_view ToString(QueueFaultKind kind) {
  switch (kind) {
    case QueueFaultKind::kDuplicateName: return "DuplicateName";
    case QueueFaultKind::kParentMissing: return "ParentMissing";
    case QueueFaultKind::kParentCycle: return "ParentCycle";
    case QueueFaultKind::kTwoQuotas: return "TwoQuotas";
    case QueueFaultKind::kNegativeNumber: return "NegativeNumber";
    case QueueFaultKind::kWeightTooSmall: return "WeightTooSmall";
    case QueueFaultKind::kLimitBelowGuarantee: return "LimitBelowGuarantee";
    case QueueFaultKind::kParentFaulty: return "ParentFaulty";
    case QueueFaultKind::kInvalidSelector: return "InvalidSelector";
    case QueueFaultKind::kPoolMissing: return "PoolMissing";
    case QueueFaultKind::kGuaranteesExceedParent: return "GuaranteesExceedParent";
    case QueueFaultKind::kGuaranteesExceedPool: return "GuaranteesExceedPool";
    case QueueFaultKind::kLimitBelowUse: return "LimitBelowUse";
    case QueueFaultKind::kNamespaceInTwoQueues: return "NamespaceInTwoQueues";
  }
  return "";
}

bool IsWarning(QueueFaultKind kind) { return kind >= QueueFaultKind::kPoolMissing; }

std::string QuotaField(int quota, std::string_view name) {
  std::string field = "spec.quotas";
  if (quota >= 0) field.append("[").append(std::to_string(quota)).append("].").append(name);
  return field;
}

}  // namespace grus
