// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/key_feed.h"

#include <algorithm>

#include "controllers/frame/alnair_news.h"

namespace grus {

void KeyFeed::Add(const kube::ObjectKey& key, News news, bool is_low) const {
  if (queue_ == nullptr || news == News::kNone) return;
  if (news == News::kSoon) return queue_->AddAfter(key, soon_);
  queue_->Add(key, is_low ? kube::Priority::kLow : kube::Priority::kNormal);
}

void KeyFeed::AddAfter(const kube::ObjectKey& key, kube::Duration wait) const {
  if (queue_ != nullptr) queue_->AddAfter(key, wait);
}

void KeyFeed::AddChanged(const kube::ObjectKey& owner, const kube::Kind& kind, const kube::Change& change, News news,
                         bool is_low) const {
  if (IsOnlyForAlnair(kind, change)) return;
  const bool is_echo =
      writes_ && change.after && writes_->IsOwnEcho(owner, kind, change.after->metadata.resource_version);
  Add(owner, is_echo ? std::min(news, echo_) : news, is_low);
}

void KeyFeed::AddObjectsOf(kube::Informer& objects) const {
  objects.AddHandler([this, &kind = objects.kind()](const kube::Change& change, bool is_initial) {
    AddChanged(change.Any().metadata.Key(), kind, change, News::kNow, is_initial);
  });
}

}  // namespace grus
