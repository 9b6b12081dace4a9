// SPDX-License-Identifier: Apache-2.0
// Writes what pods with GPUs used at most into the annotations of the original Alnair, for its tools: on the pods, and
// on the objects that control them.
//
// A pod or an owner is written when one of its numbers is new or has risen by a tenth; those first that were written
// longest ago. An owner is read once, before it is first written, and goes on from what stands there if grus wrote it
// to this very object (api::kAlnairOfAnnotation); so do pods, from the cache. Only metadata.annotations change. A pod
// or owner that is gone is left alone. A write that is refused is told once a minute at most, and tried again at the
// next change; one that did not arrive, at the next sweep.
//
// Not thread-safe. Memory: less than a kB for each running pod.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "controllers/profiler/usage_questions.h"
#include "controllers/telemetry/alnair_text.h"
#include "controllers/telemetry/run_book.h"

namespace grus {

class AlnairAnnotations {
 public:
  static constexpr std::size_t kMostPodsOfOwner = 256;  // An API server takes 256 KiB of annotations.

  // `pods`: of the namespaces that are looked after. `source`: which these are, and which owners may be written
  // besides ElasticHorovodJobs and Jobs.
  AlnairAnnotations(kube::Client& client, const kube::Informer& pods, const UsageSource& source,
                    const kube::Clock& clock, const kube::Log& log);

  // Once a sweep. `running`: all pods with GPUs that run.
  void Take(const std::vector<RunBook::Running>& running, const UsageAnswer& answer);
  // Writes some of what is due, `most` at most; how many it wrote or read.
  int WriteSome(int most, std::stop_token stop);
  bool has_more() const { return !due_.empty(); }

 private:
  struct Pod {
    kube::ObjectKey key = {};
    AlnairPod so_far = {}, written = {};
    std::optional<kube::TimePoint> last_write = {};
    bool is_running = true;  // In this sweep.
  };
  struct Owner {
    kube::ObjectKey key = {};
    std::string uid = {}, api_version = {}, kind = {}, resource = {};
    bool is_read = false;
    struct Entry {
      AlnairOwned so_far = {};
      bool is_running = true;  // In this sweep.
    };
    std::map<std::string, Entry> pods = {};  // By name; of those that run, and of others until it is written.
    std::map<std::string, AlnairOwned> written = {};
    std::optional<kube::TimePoint> last_write = {};

    bool IsDue(const std::string& pod) const;
  };
  struct Due {
    bool is_owner = false;
    std::string id = {};  // The UID of the pod, or the owner's JobRef::Id().
    std::optional<kube::TimePoint> last_write = {};
  };

  void TakePod(const kube::Pod& pod, const std::string& node, const PodUsage& usage, const PodDetail& detail);
  void TakeForOwner(const kube::Pod& pod, const AlnairOwned& now);
  Owner* OwnerToWrite(const kube::Pod& pod);
  void GatherDue();
  void ForgetWhoIsGone();
  void WritePod(const std::string& uid, std::stop_token stop);
  void WriteOwner(const std::string& id, std::stop_token stop);
  kube::Status ReadOwner(const kube::Kind& kind, Owner& owner, std::stop_token stop);
  // Whether it need not be tried again before a number changes.
  bool IsSettled(const kube::Status& done, const std::string& object, const std::stop_token& stop);

  kube::Client& client_;
  const kube::Informer& pod_cache_;
  const UsageSource& source_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::map<std::string, Pod> pods_;      // By UID.
  std::map<std::string, Owner> owners_;  // By ID.
  std::deque<Due> due_;
  kube::FailureNews news_;
};

}  // namespace grus
