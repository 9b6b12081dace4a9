// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/usage_questions.h"

#include <algorithm>
#include <utility>

#include "controllers/telemetry/query_window.h"

namespace grus {
namespace {

// The newest sample may be this old when it is asked for.
constexpr std::chrono::seconds kScrapeLag{15}, kLongest{600};
constexpr kube::Duration kLongestSweep = std::chrono::minutes(1);  // But for the query that runs then.

constexpr char kTheRest[] = "the rest";  // The queries that a sweep has no time for.

}  // namespace

bool UsageSource::Sees(const std::string& ns) const {
  return namespaces.empty() || std::ranges::find(namespaces, ns) != namespaces.end();
}

UsageQuestions::UsageQuestions(Prometheus& prometheus, const UsageSource& source, const kube::Clock& clock,
                               const kube::Log& log)
    : prometheus_(prometheus), source_(source), clock_(clock), log_(log) {}

std::chrono::seconds UsageQuestions::WindowOf(const std::string& name, kube::TimePoint now) const {
  const auto at = answered_.find(name);
  if (at == answered_.end()) return kShortest;
  return std::clamp<std::chrono::seconds>(std::chrono::ceil<std::chrono::seconds>(now - at->second) + kScrapeLag,
                                          kShortest, kLongest);
}

UsageAnswer UsageQuestions::Ask(const UsageColumn::NameOf& name_of, std::stop_token stop) {
  const kube::TimePoint now = clock_.Now();
  UsageAnswer answer{.reach = std::chrono::seconds(kShortestRate)};
  const auto window_of = [&](const std::string& name) {
    const std::chrono::seconds window = WindowOf(name, now);
    answer.reach = std::max<kube::Duration>(answer.reach, window);
    return static_cast<std::int64_t>(window.count());
  };
  const auto has_time = [&] {
    if (clock_.Now() - now <= kLongestSweep) return true;  // Else what is known is still written in this pass.
    if (failing_.insert(kTheRest).second) {
      log_.Warn("what jobs use is not known", {{"of", kTheRest}, {"error", "Prometheus answers too slowly"}});
    }
    return false;
  };
  for (const UsageQuery& query : UsageQueries(window_of, source_.selector)) {
    if (!has_time()) return answer;
    UsageColumn column(query, name_of, answer.usage);
    const auto take = [&](const QuerySample& sample) { column.Take(sample.labels, sample.value); };
    if (!AskOne(query.name, query.text, take, stop)) continue;
    column.Add();
    answered_[query.name] = now;
  }
  const auto details =
      source_.writes_alnair_annotations ? DetailQueries(window_of, source_.selector) : std::vector<DetailQuery>();
  for (const DetailQuery& query : details) {
    if (!has_time()) return answer;
    DetailByPod part;
    const auto take = [&](const QuerySample& sample) {
      const auto pod = PodOfRow(sample.labels);
      if (pod && name_of(*pod)) AddDetail(sample.labels, sample.value, part[*pod]);
    };
    if (!AskOne(query.name, query.text, take, stop)) continue;
    answered_[query.name] = now;
    for (auto& [pod, detail] : part) Merge(std::move(detail), answer.details[pod]);
  }
  failing_.erase(kTheRest);
  return answer;
}

bool UsageQuestions::AskOne(const std::string& name, const std::string& text, const OnSample& on_sample,
                            std::stop_token stop) {
  const kube::Status asked = prometheus_.AskAll(source_.url, text, on_sample, stop);
  if (asked) {
    failing_.erase(name);
    return true;
  }
  if (!stop.stop_requested() && failing_.insert(name).second) {
    log_.Warn("what jobs use is not known", {{"of", name}, {"error", asked.error().message()}});
  }
  return false;
}

}  // namespace grus
