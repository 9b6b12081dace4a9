// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/fake_prometheus.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "clientlib/base/wait.h"
#include "controllers/policy/waited.h"
#include "tests/campaign/app_workload.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;
using kube::Error;
using kube::ErrorCode;
using kube::testing::Fault;
using Pod = UsageTruth::Pod;

constexpr kube::Duration kLong = 4min, kClockError = 5min, kStale = 5min;
constexpr std::size_t kHuge = 100'000'000, kPiece = 64 << 10;
// A query looks back so far at most; less a scrape that was missed.
constexpr kube::Duration kLongestLook = 600s, kSureLook = 570s;
// A sweep has the scrapes of so long. It hears of pods that went since the one before had its last answer, which is 20
// s late if a query stalled; and after a silence, of jobs that nothing was told of.
constexpr kube::Duration kSureSweep = 45s, kSureHearing = 39s, kFirstWord = 80s;

std::string Unescaped(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string FieldOf(const std::string& form, const std::string& name) {
  const std::size_t at = ("&" + form).find("&" + name + "=");
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 1;
  return Unescaped(std::string_view(form).substr(from, form.find('&', from) - from));
}

kube::Duration WindowOf(const std::string& query) {
  const std::size_t at = query.find('[');
  return at == std::string::npos ? kube::Duration() : std::chrono::seconds(std::stoll(query.substr(at + 1)));
}

using Samples = std::vector<PodSample>;
double Mean(const Samples& samples, const std::function<double(const PodSample&)>& value) {
  double sum = 0;
  for (const PodSample& sample : samples) sum += value(sample);
  return sum / static_cast<double>(samples.size());
}
double Most(const Samples& samples, const std::function<double(const PodSample&)>& value) {
  double most = 0;
  for (const PodSample& sample : samples) most = std::max(most, value(sample));
  return most;
}

constexpr char kMemory[] = "max_over_time(DCGM_FI_DEV_FB_USED{";
struct Metric {
  const char* in_query;
  std::function<double(const Samples&)> value;
};
const std::vector<Metric>& Metrics() {
  static const auto kBusy = [](const PodSample& sample) { return static_cast<double>(sample.utilization); };
  static const std::vector<Metric> kMetrics = {
      {"avg_over_time(DCGM_FI_DEV_GPU_UTIL{", [](const Samples& all) { return Mean(all, kBusy); }},
      {"max_over_time(DCGM_FI_DEV_GPU_UTIL{", [](const Samples& all) { return Most(all, kBusy); }},
      {"avg_over_time(DCGM_FI_DEV_MEM_COPY_UTIL{", [](const Samples& all) { return Mean(all, kBusy) / 2; }},
      {kMemory,
       [](const Samples& all) {
         return Most(all, [](const PodSample& sample) { return static_cast<double>(sample.memory_mib); });
       }},
      {"max_over_time(container_memory_working_set_bytes{",
       [](const Samples& all) {
         return Most(all, [](const PodSample& sample) { return static_cast<double>(sample.working_set); });
       }},
      {"irate(container_cpu_usage_seconds_total{", [](const Samples& all) { return all.back().cores; }},
      {"irate(container_network_receive_bytes_total{", [](const Samples& all) { return all.back().network; }},
      {"irate(container_fs_reads_bytes_total{", [](const Samples& all) { return all.back().disk; }},
  };
  return kMetrics;
}

std::string Answered(const char* type, const std::string& result) {
  return std::string(R"({"status":"success","data":{"resultType":")") + type + R"(","result":[)" + result + "]}}";
}

}  // namespace

// An answer as it comes over the network.
class FakePrometheus::Body final : public kube::ByteStream {
 public:
  enum class End { kRegular, kStalls, kBreaks, kHuge };
  Body(FakePrometheus& server, Whole answer, End end)
      : server_(server), asked_(server.simulation_.Now()), answer_(std::move(answer)), end_(end) {}

  kube::Result<std::string> Read(kube::TimePoint until, std::stop_token stop) override {
    if (!answer_.text.empty()) return std::exchange(answer_.text, {});
    if (end_ == End::kBreaks) return Error(ErrorCode::kUnavailable, "connection reset");
    if (end_ == End::kStalls) {
      kube::WaitFor(server_.simulation_, until - server_.simulation_.Now(), stop);
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      return Error(ErrorCode::kTimeout, "no bytes in time");
    }
    if (end_ == End::kHuge && (sent_ += kPiece) < kHuge) return std::string(kPiece, ' ');
    if (std::exchange(answer_.is_about_memory, false)) server_.memory_told_ = asked_;
    for (const auto& [job, more] : std::exchange(answer_.told, {})) {
      Told& told = server_.told_[job];
      told.has_numbers |= more.has_numbers;
      told.has_series |= more.has_series;
      told.most_memory_mib = std::max(told.most_memory_mib, more.most_memory_mib);
    }
    return std::string();
  }

 private:
  FakePrometheus& server_;
  const kube::TimePoint asked_;
  Whole answer_;
  const End end_;
  std::size_t sent_ = 0;
};

void FakePrometheus::Begin(const Fault& fault) {
  const kube::TimePoint now = simulation_.Now();
  if (fault.Is("query-outage")) away_until_ = now + kLong;
  if (fault.Is("query-all-late")) late_until_ = now + kLong;
  if (fault.Is("query-outage") || fault.Is("query-all-late")) silent_since_ = now;
  if (fault.Is("query-emptied")) empty_until_ = now + kLong;
  if (fault.Is("query-clock-ahead")) SetClock(kClockError);
  if (fault.Is("query-clock-behind")) SetClock(-kClockError);
}

void FakePrometheus::SetClock(kube::Duration offset) {
  const kube::TimePoint latest = std::max(ItsNow(), clock_.back().after);
  clock_.push_back({simulation_.Now(), offset, latest});
}

std::optional<kube::TimePoint> FakePrometheus::StampOf(std::int64_t scrape) const {
  const kube::TimePoint time = UsageTruth::TimeOf(scrape);
  if (time <= empty_until_ || time > simulation_.Now()) return std::nullopt;
  const auto period = std::find_if(clock_.rbegin(), clock_.rend(), [&](const auto& one) { return one.from <= time; });
  const kube::TimePoint stamp = time + period->offset;
  if (stamp <= period->after) return std::nullopt;
  return stamp;
}

std::vector<std::int64_t> FakePrometheus::ScrapesIn(const Pod& pod, kube::Duration window) const {
  const auto [first, last] = truth_.ScrapesOf(pod);
  const kube::TimePoint now = ItsNow();
  std::vector<std::int64_t> scrapes;
  for (std::int64_t scrape = first; scrape <= last; ++scrape) {
    const auto stamp = StampOf(scrape);
    if (stamp && *stamp <= now && *stamp >= now - window) scrapes.push_back(scrape);
  }
  return scrapes;
}

bool FakePrometheus::IsHeard(const Pod& pod) const {
  const kube::TimePoint now = simulation_.Now();
  if (!pod.gone) return true;
  const bool was_silent = now < std::max(away_until_, late_until_) + kFirstWord;
  if (!was_silent) return now - *pod.gone < kSureHearing;
  return *pod.gone > silent_since_ && !ToldOf(pod.job_uid).has_numbers;
}

bool FakePrometheus::IsOnlyOneOfItsName(const Pod& pod) const {
  return std::ranges::none_of(truth_.pods(), [&](const Pod& other) {
    const bool is_lately = !other.gone || *other.gone > pod.began - 2 * kLongestLook;
    return other.key == pod.key && other.job_uid != pod.job_uid && is_lately;
  });
}

// The asker should know all since it was last told, unless that is too long ago; then, the last scrapes.
void FakePrometheus::NoteMemory(const Pod& pod, std::map<std::string, Told>& told) const {
  const kube::TimePoint now = simulation_.Now();
  const bool is_lately = memory_told_ && now - *memory_told_ <= kSureLook;
  const kube::TimePoint from = is_lately ? std::min(*memory_told_, now - kSureSweep) : now - kSureSweep;
  Told& its = told[pod.job_uid];
  for (const std::int64_t scrape : ScrapesIn(pod, kLongestLook)) {
    if (UsageTruth::TimeOf(scrape) < from) continue;
    its.most_memory_mib = std::max(its.most_memory_mib, pod.At(scrape).memory_mib);
  }
}

FakePrometheus::Whole FakePrometheus::Instant(const std::string& query, Values values) {
  const auto metric =
      std::ranges::find_if(Metrics(), [&](const Metric& one) { return query.find(one.in_query) != std::string::npos; });
  if (metric == Metrics().end()) return {Answered("vector", "")};  // Of grus-node-agent, which does not run here.
  Whole answer{.text = {}, .is_about_memory = metric->in_query == std::string_view(kMemory)};
  std::map<kube::ObjectKey, Samples> series;
  for (const Pod& pod : truth_.pods()) {
    const bool is_shown_longer = values == Values::kDeadPods && pod.gone;
    const auto scrapes = ScrapesIn(pod, is_shown_longer ? kLongestLook : WindowOf(query));
    for (const std::int64_t scrape : scrapes) series[pod.key].push_back(pod.At(scrape));
    const bool is_told = values == Values::kTrue || values == Values::kDeadPods;
    if (!is_told || !IsHeard(pod) || scrapes.empty() || !IsOnlyOneOfItsName(pod)) continue;
    answer.told[pod.job_uid].has_numbers = true;
    if (answer.is_about_memory) NoteMemory(pod, answer.told);
  }
  series[{"kube-system", "stranger"}] = {PodSample{100, 100'000, 90, 1e9, 1e9, 1'000'000'000'000}};
  std::string rows;
  for (const auto& [key, samples] : series) {
    const std::string value = values == Values::kNan       ? "NaN"
                              : values == Values::kBlank   ? "9223372036854775794"
                              : values == Values::kTooHigh ? "99"
                                                           : std::to_string(metric->value(samples));
    rows += (rows.empty() ? "" : ",") + (R"({"metric":{"namespace":")" + key.ns) + R"(","pod":")" + key.name +
            R"("},"value":[)" + std::to_string(UnixSeconds(kube::Time{simulation_.WallNow()})) + ",\"" + value + "\"]}";
  }
  answer.text = Answered("vector", rows);
  return answer;
}

// At each step the newest scrape before it counts, unless that is stale.
FakePrometheus::Whole FakePrometheus::Range(const std::string& form, Values values) const {
  const std::string query = FieldOf(form, "query"), names_begin = "pod=~\"";
  const std::size_t at = query.find(names_begin) + names_begin.size();
  const std::string names = "|" + query.substr(at, query.find('"', at) - at) + "|";
  const kube::Duration wall = simulation_.WallNow().time_since_epoch() - simulation_.Now().time_since_epoch();
  std::map<kube::TimePoint, std::pair<Samples, std::set<std::string>>> scraped;  // And of which jobs.
  for (const Pod& pod : truth_.pods()) {
    if (names.find("|" + pod.key.name + "|") == std::string::npos) continue;
    for (const std::int64_t scrape : ScrapesIn(pod, 12h)) {
      auto& [samples, jobs] = scraped[*StampOf(scrape)];
      samples.push_back(pod.At(scrape));
      jobs.insert(pod.job_uid);
    }
  }
  Whole answer;
  std::map<std::string, std::string> series;
  const auto number = [&](const char* name) { return std::stoll(FieldOf(form, name)); };
  for (std::int64_t time = number("start"); time <= number("end"); time += number("step")) {
    const kube::TimePoint moment(std::chrono::seconds(time) - wall);
    auto newest = scraped.upper_bound(moment);
    if (newest == scraped.begin() || moment - (--newest)->first >= kStale) continue;
    const auto& [samples, jobs] = newest->second;
    const auto add = [&](const char* name, double value) {
      const std::string text = values == Values::kNan       ? "NaN"
                               : values == Values::kBlank   ? "9223372036854775794"
                               : values == Values::kTooHigh ? "99"
                                                            : std::to_string(value);
      std::string& moments = series[name];
      moments += (moments.empty() ? "[" : ",[") + std::to_string(time) + ",\"" + text + "\"]";
    };
    add("gpu", Metrics()[0].value(samples));
    add("bandwidth", Metrics()[2].value(samples));
    add("memory", static_cast<double>(samples.front().memory_mib << 20));
    add("cpu", samples.front().cores);
    const bool is_told = values == Values::kTrue || values == Values::kDeadPods;
    for (const std::string& job : jobs) answer.told[job].has_series |= is_told;
  }
  std::string result;
  for (const auto& [name, moments] : series) {
    result += (result.empty() ? "" : ",") + (R"({"metric":{"series":")" + name) + R"("},"values":[)" + moments + "]}";
  }
  answer.text = Answered("matrix", result);
  return answer;
}

kube::Result<kube::StreamResponse> FakePrometheus::Answer(const kube::HttpRequest& request,
                                                          const std::vector<Fault>& faults, std::stop_token stop) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(faults, [&](const Fault& fault) { return fault.Is(name); });
  };
  const auto refusal = [](int status, const char* text) { return kube::StreamResponse{{status, {}, text}, nullptr}; };
  for (const Fault& fault : faults) Begin(fault);
  const kube::TimePoint now = simulation_.Now();
  if (now < away_until_ || has("query-refused")) return Error(ErrorCode::kUnavailable, "connection refused");
  if (now < late_until_ || has("query-late")) {
    if (!kube::WaitFor(simulation_, request.timeout, stop)) return Error(ErrorCode::kCancelled, "stopped");
    return Error(ErrorCode::kTimeout, "no answer in time");
  }
  if (has("query-password")) return refusal(401, "Unauthorized");
  if (has("query-503")) return refusal(503, "Service Unavailable");
  if (has("query-error")) {
    return refusal(422,
                   R"({"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"})");
  }
  Values values = Values::kTrue;
  if (has("query-nan")) values = Values::kNan;
  if (has("query-blank")) values = Values::kBlank;
  if (has("query-huge")) values = Values::kTooHigh;
  if (has("query-dead-pods")) values = Values::kDeadPods;
  const bool is_range = request.method == "POST";
  const std::string query = FieldOf(request.target.substr(request.target.find('?') + 1), "query");
  Whole answer = is_range ? Range(request.body, values) : Instant(query, values);
  Body::End end = Body::End::kRegular;
  if (has("query-stalls")) end = Body::End::kStalls;
  if (has("query-lost")) end = Body::End::kBreaks;
  if (has("query-huge")) end = Body::End::kHuge;
  if (has("query-html")) answer = {"<html><body>Please log in.</body></html>"};
  const bool is_cut = has("query-stalls") || has("query-lost") || has("query-truncated");
  if (is_cut) answer = {answer.text.substr(0, answer.text.size() / 2)};
  return kube::StreamResponse{{200, {}, {}}, std::make_unique<Body>(*this, std::move(answer), end)};
}

FakePrometheus::Told FakePrometheus::ToldOf(const std::string& job_uid) const {
  const auto told = told_.find(job_uid);
  return told == told_.end() ? Told() : told->second;
}

}  // namespace grus::testing
