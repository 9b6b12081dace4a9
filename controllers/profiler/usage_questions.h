// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus what all pods of the cluster use: the queries of one sweep, one after another.
//
// Each looks back to when it was last answered, within bounds. A query that fails leaves its numbers out, and one line
// in the log until it is answered again. Not thread-safe; blocks for the answers.
#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "controllers/profiler/pod_owners.h"
#include "controllers/prometheus/prometheus.h"
#include "controllers/telemetry/pod_detail.h"

namespace grus {

struct UsageSource {
  std::string url = {};                      // Of the Prometheus, which the client may ask.
  std::string selector = {};                 // As in UsageQueries().
  std::vector<std::string> namespaces = {};  // Those whose pods are seen; empty: all.
  std::vector<OwnerKind> owner_kinds = {};   // Those whose own controllers are the jobs, beside those of Kubernetes.
  bool writes_alnair_annotations = false;
  bool Sees(const std::string& ns) const;
};

struct UsageAnswer {
  UsageByPod usage = {};
  DetailByPod details = {};  // Only where annotations are written.
  kube::Duration reach{};    // How far its numbers may lie back.
};

class UsageQuestions {
 public:
  // The shortest time that a query looks back.
  static constexpr std::chrono::seconds kShortest{60};

  UsageQuestions(Prometheus& prometheus, const UsageSource& source, const kube::Clock& clock, const kube::Log& log);

  // `name_of`: of the pods that count.
  UsageAnswer Ask(const UsageColumn::NameOf& name_of, std::stop_token stop);
  // Whether something was not answered at the last time.
  bool is_failing() const { return !failing_.empty(); }

 private:
  std::chrono::seconds WindowOf(const std::string& name, kube::TimePoint now) const;
  // False: it is not known.
  bool AskOne(const std::string& name, const std::string& text, const OnSample& on_sample, std::stop_token stop);

  Prometheus& prometheus_;
  const UsageSource& source_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::map<std::string, kube::TimePoint> answered_;  // By query.
  std::set<std::string> failing_;                    // Queries, and kTheRest.
};

}  // namespace grus
