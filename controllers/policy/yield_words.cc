// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/yield_words.h"

#include "controllers/policy/waited.h"

namespace grus {

std::string YieldText(std::string_view verb, std::string_view what, const YieldNotice& notice) {
  std::string text = std::string(verb) + " " + std::string(what);
  if (notice.reason == YieldReason::kDrained) return text + " back, because its queue is being drained";
  text += " to " + (notice.for_owner.empty() ? std::string("another job") : notice.for_owner);
  switch (notice.reason) {
    case YieldReason::kGuaranteeOfOther: return text + ", whose queue is below its guarantee";
    case YieldReason::kShareOfOther: return text + ", whose queue is below its fair share";
    case YieldReason::kOwnQueue: return text + ", which comes before it in their queue";
    case YieldReason::kWorthMore: return text + ", which gains more by them";
    case YieldReason::kDrained: break;
  }
  return text;
}

kube::Time DeadlineOf(const YieldNotice& notice) { return AtUnixSeconds(notice.by); }

kube::Duration TimeLeft(const YieldNotice& notice, const kube::Time& now) {
  return DeadlineOf(notice).value - now.value;
}

}  // namespace grus
