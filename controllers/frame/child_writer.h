// SPDX-License-Identifier: Apache-2.0
// Writes to the children of one object, with the checks that keep other people's objects safe.
//
// Bring() is the rule for a child that a cache knows: it is made, put right or deleted. One that was found right is not
// compared again until it or the owner's spec changes. A create that finds the name taken looks whose it is: ours (the
// cache was late, or somebody took our label off) is put right; one that is being deleted is waited for; anybody else's
// is left alone and named in the error (kAlreadyExists).
// One writer lives for one pass. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/client/patch.h"
#include "clientlib/runtime/object_memory.h"

namespace grus {

// By owner, kept for its spec: in which state its child of a kind was last found right. Where there is an entry, there
// was a child.
using ChildMarks = kube::ObjectMemory<std::map<const kube::Kind*, std::string>>;

struct WantedChild {
  const kube::Kind& kind;
  std::shared_ptr<const kube::Object> live;  // As the cache has it; null: it is not there.
  // The child in full, or, if it is there, what of it can be changed. Empty: there is to be none.
  std::function<kube::Json(bool is_there)> make = {};
  std::function<bool(const kube::Json& wanted)> is_right = {};  // Whether `live` is, but for its labels.
  bool was_there = false;                                       // Before, as far as the owner's status knows.
  bool has_changed = false;  // `make` gives another child than `live`: it is written without a comparison.
};

class ChildWriter {
 public:
  // `marks` null: nothing is remembered, and Bring() is not called.
  ChildWriter(kube::Client& client, kube::WriteTracker& writes, ChildMarks* marks, const kube::Kind& owner_kind,
              const kube::ObjectMeta& owner, std::stop_token stop);

  kube::Status Bring(const WantedChild& child);
  // For a child that `was_there` before, the owner is read from the API server first: its own end reaches our caches on
  // another watch than that of its children, and what the garbage collector takes must not come back. kGone: the owner
  // is deleted.
  kube::Status CreateOrTake(const kube::Kind& kind, const std::function<kube::Json(bool)>& make, bool was_there);
  // kAlreadyExists: an object of that name exists, whoever owns it.
  kube::Status Create(const kube::Kind& kind, const kube::Json& child);
  // Puts the labels, the members of spec (or data) and the annotations of `wanted` over the child with that UID.
  kube::Status Restore(const kube::Kind& kind, const std::string& uid, const kube::Json& wanted);
  kube::Status Patch(const kube::Kind& kind, const std::string& name, const kube::JsonPatch& patch);
  // kInvalid: it has another UID.
  kube::Status Merge(const kube::Kind& kind, const std::string& name, const std::string& uid, kube::Json patch);
  // Does not wait for the child's end. The UID becomes a precondition.
  kube::Status Delete(const kube::Kind& kind, const kube::ObjectMeta& child, const kube::DeleteOptions& options = {});

  int writes() const { return write_count_; }
  // The resource version that the last write of this pass returned; empty: none did.
  const std::string& last_version() const { return last_version_; }

 private:
  kube::Status ConfirmOwner();
  kube::Status Noted(kube::Result<kube::Client::ObjectPtr> answer, std::string_view verb, const kube::Kind& kind,
                     const std::string& name);
  kube::Error With(kube::Error&& error, std::string_view verb, const kube::Kind& kind, const std::string& name) const;

  kube::Client& client_;
  kube::WriteTracker& writes_;
  ChildMarks* const marks_;
  const kube::Kind& owner_kind_;
  const kube::ObjectMeta& owner_;
  std::stop_token stop_;
  int write_count_ = 0;
  std::string last_version_;
  bool is_owner_confirmed_ = false;
};

}  // namespace grus
