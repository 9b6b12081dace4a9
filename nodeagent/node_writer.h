// SPDX-License-Identifier: Apache-2.0
// Keeps what users and schedulers read on this node true: the labels of its GPUs, Alnair's annotations, and Events
// about what is wrong with the GPUs, each once.
//
// It reads the node every five minutes, and before each write; it writes at most once a minute, and only what differs.
// What fails is tried again, later each time. A right that it lacks is told once: then the agent serves metrics alone.
// Time comes from `clock`. Not thread-safe, but for what AddMetrics() adds.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "clientlib/base/backoff.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/metrics.h"
#include "nodeagent/alnair_annotations.h"
#include "nodeagent/gpu_problems.h"

namespace grus {

struct NodeWriterOptions {
  std::string node_name = {};
  bool alnair_annotations = false;
  // More annotations that the node has to have, by key; empty: not. Null: none.
  std::function<std::map<std::string, std::string>()> more_annotations = {};
};

class NodeWriter {
 public:
  // All must outlive it.
  NodeWriter(kube::Client& client, const GpuProbe& probe, kube::EventRecorder& events, NodeWriterOptions options,
             const kube::Clock& clock, const kube::Log& log);

  void AddMetrics(kube::Registry& registry) const;  // REQUIRES: the registry is gone before this is.
  void Run(const std::stop_token& stop);            // Blocks until `stop`.
  void LookOnce(const std::stop_token& stop = {});

 private:
  struct Noticed {
    std::string_view reason;
    kube::TimePoint since;
    bool is_told = false;
  };

  kube::Duration ReadPeriod() const;
  bool Read(kube::TimePoint now, const std::stop_token& stop);
  void Write(const NodeSample& look, kube::TimePoint now, const std::stop_token& stop);
  // The merge patch of the node's metadata; without members: there is nothing to write.
  kube::Json Plan(const NodeSample& look);
  void SetAnnotation(std::string_view key, const std::string& text,
                     kube::Json& annotations) const;  // Empty: removes it.
  void PlanAlnair(const NodeSample& look, kube::Json& annotations) const;
  void Remember(const NodeSample& look, const kube::Json& patch);  // What was written.
  void Tell(const NodeSample& look, kube::TimePoint now);
  void Say(const GpuProblem& problem);
  void Failed(const char* verb, const kube::Error& error, kube::TimePoint now);

  kube::Client& client_;
  const GpuProbe& probe_;
  kube::EventRecorder& events_;
  const NodeWriterOptions options_;
  const kube::Clock& clock_;
  const kube::Log& log_;

  std::shared_ptr<const kube::Node> node_;  // As it was read last; null: never.
  kube::TimePoint read_at_ = kube::TimePoint::min();
  kube::TimePoint next_read_ = kube::TimePoint::min(), next_write_ = kube::TimePoint::min();  // Not before.
  kube::Backoff read_retry_, write_retry_;
  kube::FailureNews news_;
  std::set<std::string> lacked_;  // Verbs that were forbidden, and told.
  bool is_others_ = false;        // Another tool labels the node.

  std::map<int, AlnairUsage> written_;      // By the GPU's index.
  std::map<std::string, Noticed> noticed_;  // Problems that last, by their notes.
  std::array<std::atomic<int>, kGpuProblemReasons.size()> told_ = {};
};

}  // namespace grus
