// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/fault.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace kube::testing {

const std::vector<FaultKind>& AllFaultKinds() {
  using enum FaultPoint;
  static const std::vector<FaultKind> kKinds = {
      {"crash-before", kWrite, "the process dies before the write"},
      {"crash-after", kWrite, "the process dies after the write, without its answer"},
      {"reply-lost", kWrite, "the write is carried out, but the connection breaks before the answer"},
      {"reply-garbage", kWrite, "the write is carried out, but its answer is no JSON"},
      {"reply-slow", kWrite, "the write is carried out, but its answer comes after the client's deadline"},
      {"reply-truncated", kWrite, "the write is carried out, but half of its answer is missing"},
      {"refused", kWrite, "the connection is refused"},
      {"conflict", kWrite, "409 Conflict"},
      {"busy", kWrite, "429 without Retry-After"},
      {"busy-retry-after", kWrite, "429 with Retry-After: 7"},
      {"error-500", kWrite, "500 InternalError"},
      {"error-503", kWrite, "503 ServiceUnavailable with Retry-After: 1"},
      {"error-504", kWrite, "504 Timeout"},
      {"forbidden", kWrite, "403: a permission is missing for once"},
      {"invalid", kWrite, "422: an admission check refuses for once"},
      {"child-deleted", kWrite, "somebody deletes one of our objects after the write"},
      {"child-labels-lost", kWrite, "somebody takes the labels off one of our objects after the write"},
      {"child-edited", kWrite, "somebody overwrites a field of one of our objects after the write"},
      {"server-restart", kWrite, "the API server is away for 20 s after the write, and forgets old events"},
      {"server-lags", kWrite, "nothing is seen by any watch for 40 s after the write"},
      {"process-frozen", kWrite, "the process stands still for 40 s right after the write, before its answer"},
      {"clock-forward", kWrite, "the wall clock jumps an hour ahead"},
      {"clock-back", kWrite, "the wall clock jumps an hour back"},
      {"read-refused", kRead, "the connection is refused"},
      {"read-lost", kRead, "the connection breaks before the answer"},
      {"read-busy", kRead, "429 with Retry-After: 7"},
      {"read-503", kRead, "503 ServiceUnavailable"},
      {"read-504", kRead, "504 Timeout"},
      {"read-garbage", kRead, "HTML with status 200, as from a proxy"},
      {"read-truncated", kRead, "half of the answer is missing"},
      {"read-deep", kRead, "JSON of 20,000 levels"},
      {"open-refused", kOpen, "the connection is refused"},
      {"open-busy", kOpen, "429 with Retry-After: 7"},
      {"open-503", kOpen, "503 ServiceUnavailable"},
      {"open-gone", kOpen, "410 Expired"},
      {"open-no-watch-list", kOpen, "422: the server does not know watch-list"},
      {"open-html", kOpen, "HTML with status 200, as from a proxy"},
      {"watch-closed", kEvent, "the watch ends after the event"},
      {"watch-cut", kEvent, "the watch breaks at some byte of the event"},
      {"watch-silent", kEvent, "a half-open connection: nothing more comes, nor an end"},
      {"watch-gone", kEvent, "an ERROR event with 410 in place of the event"},
      {"watch-error", kEvent, "an ERROR event with 500 in place of the event"},
      {"watch-garbage", kEvent, "a line that is no JSON, before the event"},
      {"watch-unknown", kEvent, "an event of an unknown type, before the event"},
      {"watch-late", kEvent, "the event and those after it come 20 s late: kinds out of order"},
      {"watch-hidden", kEvent, "the event and those after it come 5 min late"},
      {"watch-twice", kEvent, "the event comes twice"},
      {"watch-drip", kEvent, "the event comes byte by byte"},
      {"renewal-refused", kRenewal, "leases cannot be written for 30 s"},
      {"renewal-lost", kRenewal, "the renewal is carried out, but the connection breaks before the answer"},
      {"lease-stolen", kRenewal, "somebody else takes the lease for 20 s"},
      {"leader-frozen", kRenewal, "the process stands still for 40 s right after the renewal, before its answer"},
      {"leader-crash", kRenewal, "the process dies before the renewal"},
      {"query-refused", kQuery, "the connection to Prometheus is refused"},
      {"query-outage", kQuery, "Prometheus is away for four minutes"},
      {"query-late", kQuery, "Prometheus answers after the client's deadline"},
      {"query-all-late", kQuery, "for four minutes Prometheus answers after the client's deadline"},
      {"query-stalls", kQuery, "half of the answer comes, and then nothing"},
      {"query-lost", kQuery, "half of the answer comes, and the connection breaks"},
      {"query-truncated", kQuery, "half of the answer is missing"},
      {"query-html", kQuery, "HTML with status 200, as from a proxy"},
      {"query-huge", kQuery, "an answer of 100 MB, which begins with false numbers"},
      {"query-password", kQuery, "401: Prometheus asks for a password"},
      {"query-503", kQuery, "503: Prometheus is starting"},
      {"query-error", kQuery, "422: Prometheus says that the query takes too long"},
      {"query-emptied", kQuery, "Prometheus has lost what it knew, and knows no series for four minutes"},
      {"query-nan", kQuery, "each number is NaN"},
      {"query-blank", kQuery, "each number is 9223372036854775794, DCGM's blank"},
      {"query-dead-pods", kQuery, "the answer is also about pods that went within the last ten minutes"},
      {"query-clock-ahead", kQuery, "from now on the clock of Prometheus is 5 min fast"},
      {"query-clock-behind", kQuery, "from now on the clock of Prometheus is 5 min slow"},
  };
  return kKinds;
}

const FaultKind* FindFaultKind(std::string_view name) {
  const auto& kinds = AllFaultKinds();
  const auto it = std::find_if(kinds.begin(), kinds.end(), [&](const FaultKind& kind) { return kind.name == name; });
  return it == kinds.end() ? nullptr : &*it;
}

std::string ToText(const Schedule& schedule) {
  std::string text = schedule.workload + " seed=" + std::to_string(schedule.seed);
  for (const Fault& fault : schedule.faults) {
    text.append(" ").append(fault.kind->name).append("@").append(std::to_string(fault.at));
  }
  return text;
}

Result<Schedule> ParseSchedule(std::string_view text) {
  const auto invalid = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument, why).with("schedule \"" + std::string(text) + "\"");
  };
  const auto number = [](std::string_view digits, auto& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value >= 0;
  };
  std::istringstream words{std::string(text)};
  Schedule schedule;
  words >> schedule.workload;
  std::string word;
  if (!(words >> word) || !word.starts_with("seed=") || !number(std::string_view(word).substr(5), schedule.seed)) {
    return invalid("expected \"WORKLOAD seed=N FAULT@N ...\"");
  }
  while (words >> word) {
    const std::size_t at = word.find('@');
    Fault fault;
    fault.kind = FindFaultKind(word.substr(0, at));
    if (fault.kind == nullptr) return invalid("there is no fault " + word.substr(0, at));
    if (at == std::string::npos || !number(std::string_view(word).substr(at + 1), fault.at)) {
      return invalid(word + ": expected FAULT@N");
    }
    schedule.faults.push_back(fault);
  }
  return schedule;
}

}  // namespace kube::testing
