// SPDX-License-Identifier: Apache-2.0
// Writes to the children of one object, with the checks that keep other people's objects safe.
//
// Bring() creates, corrects or deletes a child that a cache knows. A child that was found right is not compared again
// until it or the owner's spec changes. If a create finds the name taken, the existing object's owner decides: our own
// child (the cache was late, or somebody removed our label) is corrected; one that is being deleted, or that belongs to
// a deleted owner of the same name, gives kConflict; anybody else's is left alone and named in the error
// (kAlreadyExists). One writer lives for one pass. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/client/patch.h"
#include "clientlib/runtime/object_memory.h"

namespace grus {

// By owner and generation: the state in which its child of a kind was last found right. An entry also says that there
// was a child.
using ChildMarks = kube::ObjectMemory<std::map<const kube::Kind*, std::string>>;

struct WantedChild {
  const kube::Kind& kind;
  std::shared_ptr<const kube::Object> live;  // From the cache; null: it does not exist.
  // Makes the child in full or, if it exists, the part of it that can be changed. Empty: the child must not exist.
  std::function<kube::Json(bool is_there)> make = {};
  std::function<bool(const kube::Json& wanted)> is_right = {};  // Whether `live` is as wanted, labels aside.
  bool was_there = false;                                       // According to the owner's status.
  bool has_changed = false;  // `live` is known to differ from `make`: write without comparing.
};

class ChildWriter {
 public:
  // `marks` may be null if Bring() is not called.
  ChildWriter(kube::Client& client, kube::WriteTracker& writes, ChildMarks* marks, const kube::Kind& owner_kind,
              const kube::ObjectMeta& owner, std::stop_token stop);

  kube::Status Bring(const WantedChild& child);
  // If the child `was_there`, reads the owner from the API server first: the caches may show that the garbage collector
  // deleted the child before they show that the owner is deleted, and the child must not come back. kGone: the owner is
  // deleted.
  kube::Status CreateOrTake(const kube::Kind& kind, const std::function<kube::Json(bool)>& make, bool was_there);
  // kAlreadyExists: an object of that name exists, whoever owns it. Sets `uid`, if it is not null, to that of the new
  // one.
  kube::Status Create(const kube::Kind& kind, const kube::Json& child, std::string* uid = nullptr);
  // Writes the labels, annotations, owner references and data of `wanted`, and its members of spec, to the child with
  // that UID.
  kube::Status Restore(const kube::Kind& kind, const std::string& uid, const kube::Json& wanted);
  kube::Status Patch(const kube::Kind& kind, const std::string& name, const kube::JsonPatch& patch);
  // kInvalid: it has another UID.
  kube::Status Merge(const kube::Kind& kind, const std::string& name, const std::string& uid, kube::Json patch);
  // Does not wait until the child is gone. The UID becomes a precondition.
  kube::Status Delete(const kube::Kind& kind, const kube::ObjectMeta& child, const kube::DeleteOptions& options = {});

  // Reads the owner from the API server, once in a pass, whatever comes of it. kGone: it is deleted.
  kube::Status ConfirmOwner();

 private:
  kube::Status Noted(kube::Result<kube::Client::ObjectPtr> answer, std::string_view verb, const kube::Kind& kind,
                     const std::string& name);
  kube::Error With(kube::Error&& error, std::string_view verb, const kube::Kind& kind, const std::string& name) const;

  kube::Client& client_;
  kube::WriteTracker& writes_;
  ChildMarks* const marks_;
  const kube::Kind& owner_kind_;
  const kube::ObjectMeta& owner_;
  std::stop_token stop_;
  bool is_owner_confirmed_ = false;
  std::optional<kube::Error> owner_error_;  // Why it is not.
};

}  // namespace grus
