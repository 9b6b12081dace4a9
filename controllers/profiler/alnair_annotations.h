// SPDX-License-Identifier: Apache-2.0
// Writes what pods with GPUs used at most into the annotations of the original Alnair, for its tools: on the pods, and
// on the objects that control them.
//
// A pod or an owner is written when one of its numbers is new or has risen by a tenth over what stands there;
// namespaces take turns, and of each those are first that rose most. What grus did not write to this very object
// (api::kAlnairOfAnnotation) counts for nothing. What stands on a pod is in its cache; an owner is read once, before it
// is first written, and no more of it than grus writes. Only metadata.annotations change. A pod or an owner that is
// gone is left alone. A write that is refused is told once a minute at most, and tried again at the next change; one
// that did not arrive, at the next sweep. Where an owner has no room for another pod, texts of pods that are gone make
// it.
//
// Not thread-safe. Memory: two texts for each pod that has an owner, and kMostDue writes.
#pragma once

#include <deque>
#include <map>
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
  static constexpr std::size_t kMostPodsOfOwner = 256;
  static constexpr std::size_t kMostBytesOfOwner = 64 << 10;  // Names and texts. An API server takes 256 KiB of all.
  static constexpr std::size_t kMostDue = 300;                // No more can be written until the next sweep.

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
  // What a pod did since the last sweep.
  struct Seen {
    std::shared_ptr<const kube::Pod> pod = {};
    std::string node = {}, owner = {};  // JobRef::Id(); empty: none that is written.
    const PodUsage& usage;
    const PodDetail& detail;
  };
  struct Owner {
    PodOwner is = {};
    OwnerKind kind = {};
    bool is_read = false;
    std::map<std::string, std::string> texts = {};    // That stand there, by pod.
    std::map<std::string, std::string> refused = {};  // That were to stand there.
    bool is_running = true;                           // It has pods that run in this sweep.
    std::size_t pods = 0, bytes = 0;                  // Of texts of pods that are not gone.

    // Of what the pod is now; 0: there is no room for it.
    double Rise(const std::string& pod, const AlnairOwned& now) const;
    AlnairOwned Before(const std::string& pod) const;
    bool Fits(const std::string& pod, const std::string& text) const;
    void Put(const std::string& pod, const std::string& text);
  };
  struct Due {
    double rise = 0;
    bool is_owner = false;
    std::string id = {};                           // The UID of the pod, or the owner's JobRef::Id().
    kube::ObjectKey pod = {};                      // The pod.
    AlnairPod numbers = {};                        // Of the pod: what is to stand there.
    std::map<std::string, AlnairOwned> pods = {};  // Of the owner, by name: what they do.
  };

  std::string OwnerToWrite(const kube::Pod& pod);
  AlnairPod Before(const kube::Pod& pod) const;
  void Gather(const std::vector<Seen>& seen);
  // What the chosen ones are to have.
  void Fill(const std::vector<Seen>& seen);
  void WritePod(const Due& due, std::stop_token stop);
  void WriteOwner(const Due& due, std::stop_token stop);
  kube::Status ReadOwner(Owner& owner, std::stop_token stop);
  // Writes `texts` of `with`, and removes from both what has no room any more.
  kube::Status PatchOwner(Owner& with, const std::map<std::string, std::string>& texts, std::stop_token stop);
  bool IsGone(const Owner& owner, const std::string& pod) const;
  void Measure(Owner& owner) const;
  // Whether it need not be tried again before a number changes.
  bool IsSettled(const kube::Status& done, const std::string& object, const std::stop_token& stop);

  kube::Client& client_;
  const kube::Informer& pod_cache_;
  const UsageSource& source_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::map<std::string, Owner> owners_;       // By ID.
  std::map<std::string, AlnairPod> refused_;  // What was to stand on pods, by UID.
  std::deque<Due> due_;
  kube::FailureNews news_;
};

}  // namespace grus
