// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/storage.h"

#include <algorithm>
#include <cassert>

#include "clientlib/model/time.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/api_server/watch.h"

namespace kube::testing {
namespace {

// Puts kind, apiVersion and metadata first, so that lists can cut off the first two.
void PutInOrder(Json& object) {
  Json::Object& members = *object.AsObject();
  std::size_t place = 0;
  for (const std::string_view name : {"kind", "apiVersion", "metadata"}) {
    const auto at = std::find_if(members.begin() + static_cast<std::ptrdiff_t>(place), members.end(),
                                 [&](const Json::Member& member) { return member.first == name; });
    if (at == members.end()) continue;
    std::rotate(members.begin() + static_cast<std::ptrdiff_t>(place), at, at + 1);
    ++place;
  }
}

void SetVersion(Json& object, std::uint64_t number) { object["metadata"]["resourceVersion"] = std::to_string(number); }

}  // namespace

const std::string& Revision::Text() const {
  std::call_once(once_, [this] { text_ = ToText(object_); });
  return text_;
}

Storage::Storage(const Clock& clock, const FakeApiServerOptions& options)
    : clock_(clock), options_(options), random_(options.seed) {}

Table* Storage::Find(std::string_view group, std::string_view version, std::string_view plural) {
  std::string id(plural);
  if (!group.empty()) id.append(".").append(group);
  Table* const table = Find(id);
  return table && table->info->version == version ? table : nullptr;
}

Table* Storage::Find(std::string_view id) {
  const auto at = tables_.find(id);
  return at == tables_.end() ? nullptr : at->second.get();
}

Table& Storage::Add(std::shared_ptr<const ResourceInfo> info) {
  std::unique_ptr<Table>& table = tables_[info->Id()];
  if (!table) {
    table = std::make_unique<Table>();
    table->compacted = shared_->revision;
  }
  table->info = std::move(info);
  return *table;
}

void Storage::Remove(std::string_view id) {
  const auto at = tables_.find(id);
  if (at == tables_.end()) return;
  for (const auto& watch : at->second->watches) watch->End();
  tables_.erase(at);
}

RevisionPtr Storage::Get(const Table& table, const ObjectKey& key) const {
  const auto at = table.objects.find(key);
  return at == table.objects.end() ? nullptr : at->second;
}

RevisionPtr Storage::Put(Table& table, Json object) {
  PutInOrder(object);
  SetVersion(object, ++shared_->revision);
  auto revision = std::make_shared<const Revision>(std::move(object), shared_->revision);
  RevisionPtr& place = table.objects[KeyOf(revision->object())];
  RevisionPtr before = std::exchange(place, revision);
  return Record(table, {shared_->revision, std::move(before), std::move(revision), nullptr});
}

RevisionPtr Storage::Erase(Table& table, Json object) {
  const auto at = table.objects.find(KeyOf(object));
  assert(at != table.objects.end() && "callers look first, under the same lock");
  RevisionPtr before = std::move(at->second);
  table.objects.erase(at);
  PutInOrder(object);
  SetVersion(object, ++shared_->revision);
  auto last = std::make_shared<const Revision>(std::move(object), shared_->revision);
  return Record(table, {shared_->revision, std::move(before), nullptr, std::move(last)});
}

RevisionPtr Storage::Record(Table& table, Change change) {
  RevisionPtr result = change.after ? change.after : change.last;
  table.log.push_back(change);
  if (table.log.size() > options_.events_kept) {
    table.compacted = table.log.front().number;
    table.log.pop_front();
  }
  std::erase_if(table.watches, [](const auto& watch) { return watch->is_closed(); });
  for (const auto& watch : table.watches) watch->Push(change);
  if (!observers_.empty()) {
    const std::string id = table.info->Id();
    const ServerChange seen{id, JsonOf(change.before), JsonOf(change.after), change.number};
    for (const Observer& observer : observers_) observer(seen);
  }
  return result;
}

Outcome<std::map<ObjectKey, RevisionPtr>> Storage::At(const Table& table, std::uint64_t number) const {
  if (number < table.compacted) return Expired("The resourceVersion for the provided list is too old.");
  std::map<ObjectKey, RevisionPtr> objects = table.objects;
  for (auto change = table.log.rbegin(); change != table.log.rend() && change->number > number; ++change) {
    const ObjectKey key = KeyOf(change->object());
    if (change->before) {
      objects[key] = change->before;
    } else {
      objects.erase(key);
    }
  }
  return objects;
}

void Storage::Compact() {
  for (auto& [id, table] : tables_) {
    table->log.clear();
    table->compacted = shared_->revision;
  }
}

std::string Storage::Now() const { return ToText(Time{clock_.WallNow()}); }

std::string Storage::MakeUid() {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string uid = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";  // RFC 9562, version 4.
  std::uint64_t bits = 0;
  int left = 0;
  for (char& c : uid) {
    if (c != 'x') continue;
    if (left == 0) {
      bits = random_();
      left = 16;
    }
    c = kDigits[bits & 15];
    bits >>= 4;
    --left;
  }
  return uid;
}

std::string Storage::MakeName(std::string_view prefix) {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";  // No vowels: no words.
  std::string name(prefix.substr(0, 58));
  for (int i = 0; i < 5; ++i) name += kLetters[random_() % kLetters.size()];
  return name;
}

std::string Storage::MakeClusterIp() {
  const std::uint32_t given = 10 + addresses_given_++;
  return Concat({"10.0.", std::to_string(given / 250 % 250)}) + "." + std::to_string(1 + given % 250);
}

}  // namespace kube::testing
