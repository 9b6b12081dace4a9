// SPDX-License-Identifier: Apache-2.0
// A small operator for tests of the fault campaign, as a user of clientlib would write one, and what its author could
// have got wrong. For each ConfigMap with the label copy=yes it keeps another one, NAME-copy, with the same data.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/manager.h"
#include "clientlib/runtime/ownership.h"
#include "clientlib/testing/faults/workload.h"

namespace kube::testing {

enum class Bug {
  kNone,
  kGeneratesNames,   // Creates with generateName: a create that is tried again is another object.
  kSwallowsErrors,   // A failed pass waits for the next event.
  kTrustsItsCache,   // Takes AlreadyExists for success: what is there must be right.
  kWritesEachPass,   // Looks every minute and writes whatever it finds.
  kDeafToDeletes,    // Heeds no DELETED events.
  kBlindToChildren,  // Heeds no events of copies.
  kDeletesByName,    // Deletes an outdated copy, and whatever has its name by now.
  kImpatient,        // Answers 429 with another try at once, by a client that has not been told.
  kKeepsLeading      // Heeds no loss of its lease.
};

class Copier final : public Reconciler {
 public:
  // `other`: for kImpatient.
  Copier(Client& client, Client& other, Manager& manager, Bug bug)
      : client_(&client),
        other_(other),
        bug_(bug),
        sources_(manager.AddInformer(KindOf<ConfigMap>(), Labelled("copy=yes"))),
        copies_(manager.AddInformer(KindOf<ConfigMap>(), Labelled("copy-of"))),
        by_source_(copies_.AddIndex([](const Object& copy) -> std::vector<std::string> {
          const auto owner = ControllerKey(KindOf<ConfigMap>(), copy.metadata);
          return {owner ? owner->name : ""};
        })) {}

  void FeedQueue(WorkQueue& queue) {
    sources_.AddHandler([this, &queue](const Change& change, bool) {
      if (change.after || bug_ != Bug::kDeafToDeletes) queue.Add(change.Any().metadata.Key());
    });
    if (bug_ == Bug::kBlindToChildren) return;
    copies_.AddHandler([this, &queue](const Change& change, bool) {
      if (!change.after && bug_ == Bug::kDeafToDeletes) return;
      for (const ObjectKey& owner : ControllerKeys(KindOf<ConfigMap>(), change)) queue.Add(owner);
    });
  }

  Result<Action> Reconcile(const ObjectKey& key, std::stop_token stop) override {
    Status copied = Copy(key, stop);
    if (bug_ == Bug::kImpatient && !copied && copied.error().code() == ErrorCode::kTooManyRequests) {
      client_ = &other_;
      copied = Copy(key, stop);
    }
    if (bug_ == Bug::kWritesEachPass && copied) return Action::After(std::chrono::minutes(1));
    if (copied || bug_ == Bug::kSwallowsErrors) return Action::AwaitChange();
    return std::move(copied).error().with("copy " + key.ToString());
  }

 private:
  static InformerOptions Labelled(std::string selector) { return {.label_selector = std::move(selector)}; }

  Status Copy(const ObjectKey& key, const std::stop_token& stop) {
    const auto source = sources_.Get<ConfigMap>(key);
    // What is gone takes its copy with it: the copy's owner reference sees to that.
    if (!source || source->metadata.is_being_deleted()) return {};
    const auto found = copies_.ByIndex<ConfigMap>(by_source_, key.name);
    const auto copy = found.empty() ? nullptr : found.front();
    Json wanted = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", source->data_json()}});
    const std::string name = copy ? copy->metadata.name : key.name + "-copy";
    wanted["metadata"] = Json::MakeObject(
        {{"name", name}, {"namespace", key.ns}, {"labels", Json::MakeObject({{"copy-of", key.name}})}});
    if (Status owned = SetControllerReference(KindOf<ConfigMap>(), source->metadata, wanted); !owned) return owned;

    const bool is_outdated = copy && copy->metadata.Controller()->uid != source->metadata.uid;
    if (copy && !is_outdated) {
      const bool is_right = copy->data == source->data && copy->metadata.Label("copy-of") == key.name;
      if (is_right && bug_ != Bug::kWritesEachPass) return {};
      return Apply({key.ns, name}, wanted, stop);
    }
    // The cache may be behind: nothing is made for what is gone.
    auto live = client_->Get<ConfigMap>(key, stop);
    if (!live && live.error().code() == ErrorCode::kNotFound) return {};
    if (!live) return std::move(live).error();
    if ((*live)->metadata.uid != source->metadata.uid) return Error(ErrorCode::kConflict, "the cache is behind");
    if (is_outdated) {
      DeleteOptions options;
      if (bug_ != Bug::kDeletesByName) options.uid = copy->metadata.uid;
      if (Status gone = client_->Delete(KindOf<ConfigMap>(), {key.ns, name}, options, stop); !gone) return gone;
    }
    if (bug_ == Bug::kGeneratesNames) {
      wanted["metadata"].Erase("name");
      wanted["metadata"]["generateName"] = key.name + "-copy-";
    }
    auto created = client_->Create(KindOf<ConfigMap>(), key.ns, wanted, {}, stop);
    if (created) return {};
    if (created.error().code() != ErrorCode::kAlreadyExists) return std::move(created).error();
    return bug_ == Bug::kTrustsItsCache ? Status() : Apply({key.ns, name}, wanted, stop);
  }

  Status Apply(const ObjectKey& key, const Json& wanted, const std::stop_token& stop) {
    auto applied = client_->Patch(KindOf<ConfigMap>(), key, PatchType::kMerge, wanted, {}, stop);
    return applied ? Status() : Status(std::move(applied).error());
  }

  Client* client_;
  Client& other_;
  const Bug bug_;
  Informer &sources_, &copies_;
  const Store::IndexId by_source_;
};

// Only the leader writes, also when it does not know yet that it leads no more.
class CopierGate final : public WriteGate {
 public:
  explicit CopierGate(const LeaderElector& elector) : elector_(elector) {}
  Status MayWrite(const Kind&) const override {
    if (elector_.IsLeader()) return {};
    return Error(ErrorCode::kCancelled, "this process does not lead");
  }

 private:
  const LeaderElector& elector_;
};

}  // namespace kube::testing
