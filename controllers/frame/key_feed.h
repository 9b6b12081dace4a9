// SPDX-License-Identifier: Apache-2.0
// Puts the keys of changed objects on the queue of one controller.
//
// Most changes touch nothing that a plan reads; a pass for each would be most of a busy manager's work. The feature
// knows what a change means, and says it as News. Thread-safe once it is open.
#pragma once

#include "clientlib/cache/informer.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/runtime/work_queue.h"

namespace grus {

// How soon a change needs a pass over the object.
enum class News {
  kNone,  // The plan does not read it.
  kSoon,  // It can wait: one pass handles it together with others.
  kNow,
};

class KeyFeed {
 public:
  // `soon`: how long kSoon waits for more changes. `echo`: the news, at most, of the watch event of an own write.
  KeyFeed(const kube::WriteTracker& writes, kube::Duration soon, News echo = News::kNone)
      : writes_(&writes), soon_(soon), echo_(echo) {}
  // For a controller whose passes write no object that it watches.
  explicit KeyFeed(kube::Duration soon) : soon_(soon) {}

  // Nothing is added before this call. REQUIRES: before the informers start.
  void Open(kube::WorkQueue& queue) { queue_ = &queue; }

  // `is_low`: other keys go first. For masses of changes, such as the first list.
  void Add(const kube::ObjectKey& key, News news = News::kNow, bool is_low = false) const;
  void AddAfter(const kube::ObjectKey& key, kube::Duration wait) const;
  // `change`: of `owner` itself, or of a child that its passes write; own writes count as `echo`, and
  // annotations for Alnair's tools as nothing.
  void AddChanged(const kube::ObjectKey& owner, const kube::Kind& kind, const kube::Change& change,
                  News news = News::kNow, bool is_low = false) const;
  // Adds the keys of the changed objects themselves.
  void AddObjectsOf(kube::Informer& objects) const;

 private:
  const kube::WriteTracker* const writes_ = nullptr;
  const kube::Duration soon_;
  const News echo_ = News::kNone;
  kube::WorkQueue* queue_ = nullptr;
};

}  // namespace grus
