// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/managed_fields.h"

#include <algorithm>
#include <tuple>

#include "clientlib/testing/api_server/structured_merge.h"

namespace kube::testing {
namespace {

constexpr std::string_view kApply = "Apply";
constexpr std::string_view kUpdate = "Update";

struct Entry {
  FieldManager manager;
  std::string time;
  FieldSet fields;
};

// Fields that nobody owns: the server's own, and those that say which object it is.
const FieldSet& UnownedFields() {
  static const FieldSet kUnowned = [] {
    FieldSet leaf, metadata, root;
    AddSelf(leaf);
    AddSelf(metadata);
    for (const char* name : {"clusterName", "creationTimestamp", "generation", "managedFields", "name",
                             "namespace", "resourceVersion", "selfLink", "uid"})
      AddBelow(metadata, std::string("f:") + name, leaf);
    AddBelow(root, "f:apiVersion", leaf);
    AddBelow(root, "f:kind", leaf);
    AddBelow(root, "f:metadata", std::move(metadata));
    return root;
  }();
  return kUnowned;
}

std::string TextAt(const Json& json, std::string_view name) {
  const Json* const value = json.Find(name);
  return value && value->AsString() ? *value->AsString() : std::string();
}

std::vector<Entry> ReadEntries(const Json& object) {
  std::vector<Entry> entries;
  const Json* const list = object.At({"metadata", "managedFields"});
  if (!list || !list->AsArray()) return entries;
  for (const Json& item : *list->AsArray()) {
    const Json* const fields = item.Find("fieldsV1");
    if (!fields || !fields->is_object()) continue;
    entries.push_back({{TextAt(item, "manager"), TextAt(item, "operation"), TextAt(item, "apiVersion"),
                        TextAt(item, "subresource")},
                       TextAt(item, "time"),
                       *fields});
  }
  return entries;
}

Json WriteEntry(Entry&& entry) {
  Json::Object item;
  item.reserve(7);
  item.emplace_back("manager", std::move(entry.manager.name));
  item.emplace_back("operation", std::move(entry.manager.operation));
  item.emplace_back("apiVersion", std::move(entry.manager.api_version));
  if (!entry.time.empty()) item.emplace_back("time", std::move(entry.time));
  item.emplace_back("fieldsType", "FieldsV1");
  item.emplace_back("fieldsV1", std::move(entry.fields));
  if (!entry.manager.subresource.empty())
    item.emplace_back("subresource", std::move(entry.manager.subresource));
  return item;
}

// Entries that own nothing are left out. The order is the server's.
void WriteEntries(std::vector<Entry> entries, Json& object) {
  std::erase_if(entries, [](const Entry& entry) { return entry.fields.is_null(); });
  if (entries.empty()) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    const auto order = [](const Entry& entry) {
      return std::tie(entry.manager.operation, entry.time, entry.manager.name, entry.manager.api_version,
                      entry.manager.subresource);
    };
    return order(a) < order(b);
  });
  Json::Array list;
  list.reserve(entries.size());
  for (Entry& entry : entries) list.push_back(WriteEntry(std::move(entry)));
  object["metadata"]["managedFields"] = std::move(list);
}

void EraseEntries(Json& object) {
  if (Json* const metadata = object.Find("metadata")) metadata->Erase("managedFields");
}

bool IsSame(const FieldManager& a, const FieldManager& b) {
  return a.name == b.name && a.operation == b.operation && a.subresource == b.subresource &&
         (a.operation == kApply || a.api_version == b.api_version);
}

// The entry of `manager`, added without fields if there is none.
Entry& EntryOf(std::vector<Entry>& entries, const FieldManager& manager) {
  const auto at = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) { return IsSame(entry.manager, manager); });
  return at != entries.end() ? *at : entries.emplace_back(Entry{manager, "", {}});
}

const Json& EmptyObject() {
  static const Json kEmpty = Json::MakeObject();
  return kEmpty;
}

// An object from before server-side apply: an unknown manager owns all of it, so that applying conflicts.
Entry BeforeFirstApply(const FieldType& root, const Json& live, std::string_view now) {
  FieldSet fields = Compare(root, &EmptyObject(), &live).changed;
  Subtract(fields, UnownedFields());
  return {
      {"before-first-apply", std::string(kUpdate), TextAt(live, "apiVersion"), ""}, std::string(now), fields};
}

// What is in `from` and not in `without`.
FieldSet Difference(FieldSet from, const FieldSet& without) {
  Subtract(from, without);
  return from;
}

FieldSet NamedFieldsOf(const FieldType& root, const Json& value) {
  FieldSet set = FieldsOf(root, value);
  AddNamedFields(root, set);
  return set;
}

// Takes out of `merged` what the manager applied last (`last`) and nobody owns now. Fields that nobody ever
// owned stay, unless all above them that had an owner goes.
void RemoveAbandoned(const FieldType& root, Json& merged, FieldSet last, FieldSet owned) {
  AddNamedFields(root, last);
  AddNamedFields(root, owned);
  const FieldSet all = NamedFieldsOf(root, merged);

  Json kept = merged;
  RemoveFields(root, kept, last);
  FieldSet wanted = NamedFieldsOf(root, kept);
  Unite(wanted, owned);

  kept = merged;
  RemoveFields(root, kept, Difference(all, wanted));
  const FieldSet gone = Difference(all, NamedFieldsOf(root, kept));
  RemoveFields(root, merged, Intersect(gone, last));
}

std::string ConflictMessage(const FieldManager& manager) {
  std::string text = "conflict with " + ToText(Json(manager.name));
  if (!manager.subresource.empty()) text += " with subresource " + ToText(Json(manager.subresource));
  if (manager.operation == kUpdate) text += " using " + manager.api_version;
  return text;
}

void AddConflicts(const Entry& entry, const FieldSet& fields, std::vector<ApplyConflict>& conflicts) {
  for (std::string& path : PathsOf(fields)) {
    conflicts.push_back(
        {entry.manager.name, entry.manager.operation, std::move(path), ConflictMessage(entry.manager)});
  }
}

}  // namespace

Json ApplyConfiguration(const StructuralSchema* schema, const Json& live, const Json& applied,
                        const FieldManager& manager, bool force, std::string_view now,
                        std::vector<ApplyConflict>& conflicts) {
  const FieldType root = FieldType::Root(schema);
  std::vector<Entry> entries = ReadEntries(live);
  Json before = live.is_null() ? EmptyObject() : live;
  Json config = applied;
  EraseEntries(before);
  EraseEntries(config);
  if (!live.is_null() && entries.empty()) entries.push_back(BeforeFirstApply(root, before, now));

  FieldSet fields = FieldsOf(root, config);
  Json merged = Merge(root, before, config);
  Entry& own = EntryOf(entries, manager);
  own.manager.api_version = manager.api_version;
  if (!own.fields.is_null()) {
    FieldSet owned = fields;
    for (const Entry& entry : entries) {
      if (&entry != &own) Unite(owned, entry.fields);
    }
    const bool has_abandoned =
        !Difference(own.fields, owned).is_null();  // Mostly not: the same is applied again.
    if (has_abandoned) RemoveAbandoned(root, merged, std::move(own.fields), std::move(owned));
  }

  const Comparison comparison = Compare(root, &before, &merged);
  conflicts.clear();
  for (Entry& entry : entries) {
    if (&entry == &own) continue;
    if (!force) AddConflicts(entry, Intersect(entry.fields, comparison.changed), conflicts);
    Subtract(entry.fields, comparison.changed);
    Subtract(entry.fields, comparison.removed);
  }
  if (!conflicts.empty()) return {};

  Subtract(fields, UnownedFields());
  own.fields = std::move(fields);
  if (!(merged == before)) own.time = now;
  WriteEntries(std::move(entries), merged);
  return merged;
}

void TrackUpdate(const StructuralSchema* schema, const Json& before, Json& after, const FieldManager& manager,
                 std::string_view now) {
  EraseEntries(after);
  std::vector<Entry> entries = ReadEntries(before);
  if (!before.is_null() && entries.empty()) return;

  const FieldType root = FieldType::Root(schema);
  Comparison comparison = Compare(root, before.is_null() ? &EmptyObject() : &before, &after);
  for (Entry& entry : entries) {
    Subtract(entry.fields, comparison.changed);
    Subtract(entry.fields, comparison.removed);
  }
  Subtract(comparison.changed, UnownedFields());
  if (!comparison.changed.is_null()) {
    Entry& own = EntryOf(entries, manager);
    Unite(own.fields, comparison.changed);
    own.time = now;
  }
  WriteEntries(std::move(entries), after);
}

}  // namespace kube::testing
