// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/node_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clientlib/base/wait.h"
#include "nodeagent/gpu_metrics.h"
#include "nodeagent/hardware_labels.h"

namespace grus {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr kube::Duration kPeriod = seconds(5);
constexpr kube::Duration kReadPeriod = minutes(5);
// Each write makes the scheduler try again all pods that this node has refused.
constexpr kube::Duration kWritePeriod = minutes(1);
// The jitter keeps the agents of a large cluster apart when its API server comes back.
constexpr kube::BackoffPolicy kRetry{minutes(1), minutes(10), 2.0, 0.25};

bool IsUsageKey(std::string_view key) {
  constexpr std::string_view kPrefix = kGpuUsageAnnotation;
  if (!key.starts_with(kPrefix) || key.size() == kPrefix.size()) return false;
  return key.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

std::string UsageKey(const GpuState& state) { return kGpuUsageAnnotation + std::to_string(state.gpu.index); }

void AddUnlessEmpty(kube::Json& parent, const char* name, kube::Json object) {
  if (!object.AsObject()->empty()) parent[name] = std::move(object);
}

}  // namespace

NodeWriter::NodeWriter(kube::Client& client, const GpuProbe& probe, kube::EventRecorder& events,
                       NodeWriterOptions options, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      probe_(probe),
      events_(events),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      read_retry_(kRetry, clock.RandomSeed()),
      write_retry_(kRetry, clock.RandomSeed()) {}

void NodeWriter::AddMetrics(kube::Registry& registry) const {
  registry.AddGaugeFamily(
      "grus_node_gpu_problems", "What is wrong with the GPUs of this node, as its Events say.", {"reason"}, [this] {
        kube::Registry::Samples samples;
        for (std::size_t i = 0; i < told_.size(); ++i) {
          samples.push_back({{std::string(kGpuProblemReasons[i])}, static_cast<double>(told_[i].load())});
        }
        return samples;
      });
}

void NodeWriter::Run(const std::stop_token& stop) {
  while (kube::WaitFor(clock_, kPeriod, stop)) LookOnce(stop);
}

void NodeWriter::LookOnce(const std::stop_token& stop) {
  const std::shared_ptr<const NodeSample> look = probe_.newest();
  const kube::TimePoint now = clock_.Now();
  if (look == nullptr || now - look->at > kFresh) return;
  if (now >= next_read_ && (node_ == nullptr || now - read_at_ >= ReadPeriod())) Read(now, stop);
  if (now >= next_read_ && now >= next_write_ && node_ != nullptr) Write(*look, now, stop);
  Tell(*look, now);
}

kube::Duration NodeWriter::ReadPeriod() const {
  const auto is_untold = [](const auto& one) { return !one.second.is_told; };
  return std::ranges::any_of(noticed_, is_untold) ? minutes(1) : kReadPeriod;
}

bool NodeWriter::Read(kube::TimePoint now, const std::stop_token& stop) {
  auto read = client_.Get<kube::Node>({"", options_.node_name}, stop);
  if (!read) {
    next_read_ = now + std::max(read_retry_.Next(), read.error().retry_after().value_or(kube::Duration::zero()));
    Failed("get", read.error(), now);
    return false;
  }
  read_retry_.Reset();
  node_ = *std::move(read);
  read_at_ = now;
  return true;
}

void NodeWriter::Write(const NodeSample& look, kube::TimePoint now, const std::stop_token& stop) {
  if (Plan(look).AsObject()->empty()) return;
  if (read_at_ != now && !Read(now, stop)) return;
  kube::Json patch = Plan(look);
  if (patch.AsObject()->empty()) return;
  // Whatever another tool wrote since the read is seen first.
  patch["resourceVersion"] = node_->metadata.resource_version;
  const auto written = client_.Patch(kube::KindOf<kube::Node>(), {"", options_.node_name}, kube::PatchType::kMerge,
                                     kube::Json::MakeObject({{"metadata", patch}}), {}, stop);
  if (!written) {
    next_write_ = now + std::max(write_retry_.Next(), written.error().retry_after().value_or(kube::Duration::zero()));
    return Failed("patch", written.error(), now);
  }
  write_retry_.Reset();
  news_.Reset();
  next_write_ = now + kWritePeriod;
  node_ = std::static_pointer_cast<const kube::Node>(*written);
  Remember(look, patch);
}

kube::Json NodeWriter::Plan(const NodeSample& look) {
  kube::Json patch = kube::Json::MakeObject();
  kube::Json labels = kube::Json::MakeObject(), annotations = kube::Json::MakeObject();
  if (look.is_complete()) {
    LabelChange change = PlanLabels(node_->metadata, HardwareLabels(look));
    if (change.is_others && !std::exchange(is_others_, true)) {
      log_.Info("another tool labels this node with nvidia.com/gpu.*: its labels are left to that");
    }
    is_others_ = change.is_others;
    labels = std::move(change.labels);
    annotations = std::move(change.annotations);
  }
  if (options_.alnair_annotations) PlanAlnair(look, annotations);
  if (options_.more_annotations) {
    for (const auto& [key, text] : options_.more_annotations()) SetAnnotation(key, text, annotations);
  }
  AddUnlessEmpty(patch, "labels", std::move(labels));
  AddUnlessEmpty(patch, "annotations", std::move(annotations));
  return patch;
}

void NodeWriter::SetAnnotation(std::string_view key, const std::string& text, kube::Json& annotations) const {
  if (node_->metadata.Annotation(key) != text) annotations[key] = text.empty() ? kube::Json() : kube::Json(text);
}

void NodeWriter::PlanAlnair(const NodeSample& look, kube::Json& annotations) const {
  const auto set = [&](std::string_view key, const std::string& text) { SetAnnotation(key, text, annotations); };
  if (look.is_complete()) set(kGpuStaticAnnotation, GpuStaticText(look));
  std::set<std::string> working;
  for (const GpuState& state : look.gpus) {
    const std::optional<AlnairUsage> usage = AlnairUsageOf(state);
    if (!usage) continue;
    const std::string key = UsageKey(state);
    working.insert(key);
    const auto before = written_.find(state.gpu.index);
    const bool is_due =
        before == written_.end() || HasMoved(before->second, *usage) || !node_->metadata.annotations.contains(key);
    if (is_due) set(key, ToText(*usage));
  }
  // Those of GPUs that are lost or taken out would say what is over.
  for (const auto& [key, text] : node_->metadata.annotations) {
    if (IsUsageKey(key.view()) && !working.contains(std::string(key.view()))) set(key.view(), "");
  }
}

void NodeWriter::Remember(const NodeSample& look, const kube::Json& patch) {
  for (const GpuState& state : look.gpus) {
    if (patch.At({"annotations", UsageKey(state)}) == nullptr) continue;
    if (const std::optional<AlnairUsage> usage = AlnairUsageOf(state)) written_[state.gpu.index] = *usage;
  }
}

void NodeWriter::Tell(const NodeSample& look, kube::TimePoint now) {
  std::map<std::string, Noticed> lasting;
  std::array<int, kGpuProblemReasons.size()> told = {};
  for (const GpuProblem& problem : FindGpuProblems(look, node_.get())) {
    const auto known = noticed_.find(problem.note);
    Noticed one = known == noticed_.end() ? Noticed{problem.reason, now} : known->second;
    // What must last must be so on the node, too, as it was read since.
    const bool has_lasted = problem.told_after == kube::Duration::zero() || read_at_ - one.since >= problem.told_after;
    if (has_lasted && !std::exchange(one.is_told, true)) Say(problem);
    const auto reason = std::ranges::find(kGpuProblemReasons, problem.reason);
    if (one.is_told) ++told[static_cast<std::size_t>(reason - kGpuProblemReasons.begin())];
    lasting.emplace(problem.note, one);
  }
  for (const auto& [note, one] : noticed_) {
    if (!one.is_told || lasting.contains(note)) continue;
    log_.Info("a problem of this node's GPUs is over", {{"reason", one.reason}, {"problem", note}});
  }
  noticed_ = std::move(lasting);
  for (std::size_t i = 0; i < told.size(); ++i) told_[i] = told[i];
}

void NodeWriter::Say(const GpuProblem& problem) {
  log_.Warn("this node's GPUs have a problem", {{"reason", problem.reason}, {"problem", problem.note}});
  // Without the node, as the kubelet does: its name for its UID.
  kube::ObjectMeta regarding;
  regarding.name = regarding.uid = options_.node_name;
  if (node_) regarding = node_->metadata;
  events_.Record(kube::EventType::kWarning, kube::KindOf<kube::Node>(), regarding, problem.reason, "LookAtGpus",
                 problem.note);
}

void NodeWriter::Failed(const char* verb, const kube::Error& error, kube::TimePoint now) {
  if (error.code() == kube::ErrorCode::kCancelled) return;
  if (error.code() != kube::ErrorCode::kForbidden) {
    if (news_.IsNews(error, now)) {
      log_.Warn("this node cannot be labelled, trying again", {{"verb", verb}, {"error", error.message()}});
    }
    return;
  }
  if (!lacked_.insert(verb).second) return;
  log_.Warn("this account may not label its node, metrics go on: upgrade the chart, or add the right to its role",
            {{"verb", verb}, {"error", error.message()}});
}

}  // namespace grus
