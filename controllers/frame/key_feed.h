// SPDX-License-Identifier: Apache-2.0
// From the changes that caches tell of to keys on the queue of one controller.
//
// Objects change far more often than anything that a plan reads; a pass for each change is most of what a busy manager
// would do. What a change means its feature knows, and says it as News.
// Thread-safe once it is open.
#pragma once

#include "clientlib/cache/informer.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/runtime/work_queue.h"

namespace grus {

// What a change is worth to the object that a pass would be about.
enum class News {
  kNone,  // The plan does not read it.
  kSoon,  // It decides nothing that cannot wait: one pass for it and those that come with it.
  kNow,
};

class KeyFeed {
 public:
  // `soon`: how long kSoon waits for more. `echo`: what it is worth that an own write, noted in `writes`, comes back.
  KeyFeed(const kube::WriteTracker& writes, kube::Duration soon, News echo = News::kNone)
      : writes_(writes), soon_(soon), echo_(echo) {}

  // Until then nothing is added. REQUIRES: before the informers start.
  void Open(kube::WorkQueue& queue) { queue_ = &queue; }

  // `is_low`: others go first. For what comes in masses, as the first list does.
  void Add(const kube::ObjectKey& key, News news = News::kNow, bool is_low = false) const;
  void AddAfter(const kube::ObjectKey& key, kube::Duration wait) const;
  // `change` is of `owner`, or of a child that its passes write. An own write that comes back is an echo.
  void AddChanged(const kube::ObjectKey& owner, const kube::Kind& kind, const kube::Change& change,
                  News news = News::kNow, bool is_low = false) const;
  // The keys of the changed objects themselves.
  void AddObjectsOf(kube::Informer& objects) const;

 private:
  const kube::WriteTracker& writes_;
  const kube::Duration soon_;
  const News echo_;
  kube::WorkQueue* queue_ = nullptr;
};

}  // namespace grus
