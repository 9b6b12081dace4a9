// SPDX-License-Identifier: Apache-2.0
// Writes to the children of one job, with the checks that keep other people's objects safe.
//
// One writer lives for one pass. A create that finds the name taken looks whose it is: ours (the cache was late, or
// somebody took our label off) is restored; what is being deleted is waited for; anybody else's is left
// alone and named in the error (kAlreadyExists).
// Not thread-safe.
#pragma once

#include <stop_token>
#include <string>

#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/client/patch.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

class ChildWriter {
 public:
  ChildWriter(kube::Client& client, kube::WriteTracker& writes, const api::ElasticHorovodJob& job,
              std::stop_token stop);

  // For a child that `was_there` before, the job is read from the API server first: its own end reaches our caches on
  // another watch than that of its children, and what the garbage collector takes must not come back. kGone: the job
  // is deleted.
  kube::Status Create(const kube::Kind& kind, const kube::Json& child, bool was_there);
  // Puts the labels, the members of spec (or data) and the annotations of `wanted` over the child with that UID.
  kube::Status Restore(const kube::Kind& kind, const std::string& uid, const kube::Json& wanted);
  kube::Status Patch(const kube::Kind& kind, const std::string& name, const kube::JsonPatch& patch);
  kube::Status Delete(const kube::Kind& kind, const kube::Object& child, const kube::DeleteOptions& options = {});

  int writes() const { return write_count_; }
  // Of the object, as the last write of this pass left it; empty: none was answered.
  const std::string& last_version() const { return last_version_; }

 private:
  kube::Status ConfirmJob();
  void Note(const kube::Kind& kind, const kube::Object& answer);
  kube::Error With(kube::Error&& error, std::string_view verb, const kube::Kind& kind, const std::string& name) const;

  kube::Client& client_;
  kube::WriteTracker& writes_;
  const api::ElasticHorovodJob& job_;
  std::stop_token stop_;
  int write_count_ = 0;
  std::string last_version_;
  bool is_job_confirmed_ = false;
};

}  // namespace grus
