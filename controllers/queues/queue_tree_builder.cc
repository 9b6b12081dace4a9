// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_tree_builder.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "controllers/queues/max_min.h"
#include "controllers/queues/wording.h"

namespace grus {
namespace {

constexpr char kLeftOut[] = "; until then this queue and those below it start nothing new";

std::string ClosedIn(const std::string& pool) { return "; until then nothing new starts in pool " + pool; }

}  // namespace

QueueTreeBuilder::QueueTreeBuilder(std::span<const QueueSpec> specs, std::span<const PoolSize> pools) : specs_(specs) {
  tree_.pools_.assign(pools.begin(), pools.end());
  for (PoolSize& pool : tree_.pools_) pool.milli = std::clamp<std::int64_t>(pool.milli, 0, kMostMilli);
  for (std::size_t i = 0; i < pools.size(); ++i) tree_.pools_by_name_[pools[i].name] = static_cast<PoolIndex>(i);
  tree_.is_shared_.assign(pools.size(), false);
}

QueueTree QueueTreeBuilder::Build() {
  CollectEntries();
  FindParents();
  FindCycles();
  AddQueues();
  for (QueueIndex queue = kRootQueue + 1; queue < tree_.size(); ++queue) ReadQuotas(queue);
  for (QueueIndex queue = kRootQueue + 1; queue < tree_.size(); ++queue) InheritClosed(queue);
  SumUpGuarantees();
  FitIntoParents();
  std::ranges::sort(tree_.faults_, [](const QueueFault& a, const QueueFault& b) {
    return std::tie(a.queue, a.field, a.message) < std::tie(b.queue, b.field, b.message);
  });
  return std::move(tree_);
}

void QueueTreeBuilder::CollectEntries() {
  std::map<std::string_view, Entry> by_name;
  for (const QueueSpec& spec : specs_) {
    const auto [entry, is_new] = by_name.try_emplace(spec.name, Entry{&spec});
    if (!is_new) ++entry->second.copies;
  }
  by_name.try_emplace(kDefaultQueue, Entry{&implicit_default_});
  for (auto& [name, entry] : by_name) {
    if (entry.copies > 1) {
      entry.is_left_out = true;
      NoteName(entry.spec->name, "metadata.name", QueueFaultKind::kDuplicateName,
               std::to_string(entry.copies) + " queues have the name " + entry.spec->name + ": rename all but one" +
                   kLeftOut);
    }
    entries_.push_back(entry);
  }
}

void QueueTreeBuilder::FindParents() {
  for (Entry& entry : entries_) {
    const std::string& parent = entry.spec->parent;
    if (entry.is_left_out || parent.empty()) continue;
    const auto found = std::ranges::lower_bound(entries_, parent, {}, [](const Entry& e) { return e.spec->name; });
    // The queue "default" that no spec describes cannot have queues below it.
    if (found != entries_.end() && found->spec->name == parent && found->spec != &implicit_default_) {
      entry.parent = static_cast<std::size_t>(found - entries_.begin());
      continue;
    }
    entry.is_left_out = true;
    NoteName(entry.spec->name, "spec.parent", QueueFaultKind::kParentMissing,
             "there is no queue " + parent + ": create it, or name another parent" + kLeftOut);
  }
}

void QueueTreeBuilder::FindCycles() {
  constexpr std::size_t kNotSeen = ~std::size_t{0};
  std::vector<std::size_t> seen_in(entries_.size(), kNotSeen);  // The walk that came by first.
  for (std::size_t start = 0; start < entries_.size(); ++start) {
    std::optional<std::size_t> at = start;
    while (at && seen_in[*at] == kNotSeen) {
      seen_in[*at] = start;
      at = entries_[*at].parent;
    }
    if (!at || seen_in[*at] != start) continue;
    std::vector<std::size_t> members = {*at};
    for (std::size_t next = *entries_[*at].parent; next != *at; next = *entries_[next].parent) members.push_back(next);
    NoteCycle(members);
  }
}

void QueueTreeBuilder::NoteCycle(const std::vector<std::size_t>& members) {
  for (std::size_t first = 0; first < members.size(); ++first) {
    Entry& entry = entries_[members[first]];
    std::string path = entry.spec->name;
    for (std::size_t step = 1; step <= members.size(); ++step) {
      path += " -> " + entries_[members[(first + step) % members.size()]].spec->name;
    }
    entry.is_left_out = true;
    NoteName(entry.spec->name, "spec.parent", QueueFaultKind::kParentCycle,
             "the queue is above itself (" + path + "): change the parent of one of these" + kLeftOut);
  }
  for (const std::size_t member : members) entries_[member].parent.reset();
}

void QueueTreeBuilder::AddQueues() {
  std::vector<std::vector<std::size_t>> below(entries_.size() + 1);  // By entry; the last one: the root.
  for (std::size_t i = 0; i < entries_.size(); ++i) below[entries_[i].parent.value_or(entries_.size())].push_back(i);

  tree_.queues_.emplace_back();
  spec_of_.push_back(nullptr);
  std::vector<std::size_t> entry_of = {entries_.size()};  // By queue. It grows while it is walked: by level.
  for (QueueIndex parent = kRootQueue; parent < tree_.size(); ++parent) {
    for (const std::size_t entry : below[entry_of[static_cast<std::size_t>(parent)]]) {
      AddQueue(entries_[entry], parent);
      entry_of.push_back(entry);
    }
  }
  const std::size_t cells = tree_.queues_.size() * tree_.pools_.size();
  tree_.quotas_.resize(cells);
  own_.resize(cells);
  for (PoolIndex pool = 0; pool < tree_.pool_count(); ++pool) {
    Quota(kRootQueue, pool).guaranteed = Quota(kRootQueue, pool).limit = tree_.PoolAt(pool).milli;
  }
}

void QueueTreeBuilder::AddQueue(const Entry& entry, QueueIndex parent) {
  const QueueSpec& spec = *entry.spec;
  const QueueIndex index = tree_.size();
  Queue& above = tree_.queues_[static_cast<std::size_t>(parent)];
  above.children.push_back(index);

  Queue queue;
  queue.name = spec.name;
  queue.parent = parent;
  queue.level = above.level + 1;
  queue.is_left_out = entry.is_left_out || above.is_left_out;
  queue.stop = std::max(spec.stop, above.stop);
  queue.selects_namespaces = spec.selects_namespaces;
  queue.order = spec.order;
  queue.reclaim = spec.reclaim;
  queue.minimum_runtime_seconds = spec.minimum_runtime_seconds;
  if (above.is_left_out) {
    NoteName(spec.name, "spec.parent", QueueFaultKind::kParentFaulty,
             "the queue " + above.name + " above it is left out: repair that one" + kLeftOut);
  }
  tree_.by_name_[spec.name] = index;
  tree_.queues_.push_back(std::move(queue));
  spec_of_.push_back(&spec);
}

void QueueTreeBuilder::ReadQuotas(QueueIndex queue) {
  if (tree_.At(queue).is_left_out) {
    for (PoolIndex pool = 0; pool < tree_.pool_count(); ++pool) Quota(queue, pool).is_closed = true;
    return;
  }
  for (std::size_t i = 0; i < SpecOf(queue)->quotas.size(); ++i) ReadQuota(queue, static_cast<int>(i));
}

void QueueTreeBuilder::ReadQuota(QueueIndex queue, int field) {
  const PoolQuota& spec = SpecOf(queue)->quotas[static_cast<std::size_t>(field)];
  const PoolIndex pool = tree_.FindPool(spec.pool);
  if (pool == kNoPool) {
    Note(queue, QuotaField(field, "pool"), QueueFaultKind::kPoolMissing,
         "there is no pool " + spec.pool + ": create it, or remove this quota, which counts nowhere");
    return;
  }
  tree_.is_shared_[static_cast<std::size_t>(pool)] = true;
  EffectiveQuota& quota = Quota(queue, pool);
  OwnQuota& own = Own(queue, pool);
  const QuotaNumbers numbers = ReadNumbers(queue, field);
  const bool is_second = quota.field >= 0;
  if (is_second) {
    Note(queue, QuotaField(field, "pool"), QueueFaultKind::kTwoQuotas,
         "quotas " + std::to_string(quota.field) + " and " + std::to_string(field) + " are both for pool " + spec.pool +
             ": remove one" + ClosedIn(spec.pool) + ", and the smaller numbers hold");
  } else {
    own = {numbers.guaranteed, numbers.lendable};
    quota.field = field;
    quota.weight = numbers.weight;
  }
  if (numbers.guaranteed) own.guaranteed = std::min(own.guaranteed.value_or(kNoLimit), *numbers.guaranteed);
  quota.is_closed = quota.is_closed || is_second || numbers.is_faulty;
  quota.weight = std::min(quota.weight, numbers.weight);
  quota.limit = std::min(quota.limit, numbers.limit);
  own.lendable = std::min(own.lendable, numbers.lendable);
}

QueueTreeBuilder::QuotaNumbers QueueTreeBuilder::ReadNumbers(QueueIndex queue, int field) {
  const PoolQuota& spec = SpecOf(queue)->quotas[static_cast<std::size_t>(field)];
  QuotaNumbers numbers;
  const auto read = [&](std::int64_t milli, const char* name) {
    if (milli >= 0) return std::min(milli, kMostMilli);
    numbers.is_faulty = true;
    Note(queue, QuotaField(field, name), QueueFaultKind::kNegativeNumber,
         std::string(name) + " is " + GpuNumber(milli) + ": set at least 0" + ClosedIn(spec.pool));
    return std::int64_t{0};
  };
  if (spec.guaranteed_milli) numbers.guaranteed = read(*spec.guaranteed_milli, "guaranteed");
  if (spec.lendable_milli) numbers.lendable = read(*spec.lendable_milli, "lendable");
  if (spec.limit_milli) numbers.limit = read(*spec.limit_milli, "limit");
  numbers.weight = std::clamp<std::int64_t>(spec.weight, 1, kMostMilli);
  if (spec.weight < 1) {
    numbers.is_faulty = true;
    Note(queue, QuotaField(field, "weight"), QueueFaultKind::kWeightTooSmall,
         "weight is " + std::to_string(spec.weight) + ": set at least 1" + ClosedIn(spec.pool));
  }
  if (numbers.limit < numbers.guaranteed.value_or(0)) {
    numbers.is_faulty = true;
    Note(queue, QuotaField(field, "limit"), QueueFaultKind::kLimitBelowGuarantee,
         "the limit of " + GpuCount(numbers.limit) + " is below the guarantee of " + GpuCount(*numbers.guaranteed) +
             ": raise it, or lower guaranteed" + ClosedIn(spec.pool));
  }
  return numbers;
}

void QueueTreeBuilder::InheritClosed(QueueIndex queue) {
  const Queue& at = tree_.At(queue);
  for (PoolIndex pool = 0; pool < tree_.pool_count() && !at.is_left_out; ++pool) {
    EffectiveQuota& quota = Quota(queue, pool);
    if (quota.is_closed || !Quota(at.parent, pool).is_closed) continue;
    quota.is_closed = true;
    const std::string& name = tree_.PoolAt(pool).name;
    Note(queue, "spec.parent", QueueFaultKind::kParentFaulty,
         "the quota of the queue " + tree_.NameOf(at.parent) + " above it in pool " + name +
             " is faulty: repair that one" + ClosedIn(name));
  }
}

void QueueTreeBuilder::SumUpGuarantees() {
  for (QueueIndex queue = tree_.size() - 1; queue > kRootQueue; --queue) {
    for (PoolIndex pool = 0; pool < tree_.pool_count(); ++pool) {
      EffectiveQuota& quota = Quota(queue, pool);
      std::optional<std::int64_t>& own = Own(queue, pool).guaranteed;
      if (!own) {
        own = 0;
        for (const QueueIndex child : tree_.At(queue).children) *own += Quota(child, pool).guaranteed;
      }
      quota.guaranteed = *own = std::min(*own, quota.limit);
    }
  }
}

void QueueTreeBuilder::FitIntoParents() {
  for (QueueIndex queue = kRootQueue; queue < tree_.size(); ++queue) {
    for (PoolIndex pool = 0; pool < tree_.pool_count(); ++pool) FitChildren(queue, pool);
  }
  for (QueueIndex queue = kRootQueue + 1; queue < tree_.size(); ++queue) {
    for (PoolIndex pool = 0; pool < tree_.pool_count(); ++pool) {
      const OwnQuota& own = Own(queue, pool);
      EffectiveQuota& quota = Quota(queue, pool);
      // A queue that starts nothing needs nothing kept for it.
      const bool keeps = quota.field >= 0 && !quota.is_closed && tree_.At(queue).stop == QueueStop::kNone;
      if (keeps) quota.kept = std::min(quota.guaranteed, std::max<std::int64_t>(0, *own.guaranteed - own.lendable));
    }
  }
}

void QueueTreeBuilder::FitChildren(QueueIndex parent, PoolIndex pool) {
  const std::vector<QueueIndex>& children = tree_.At(parent).children;
  std::int64_t sum = 0;
  std::vector<MaxMinItem> items;
  for (const QueueIndex child : children) {
    const std::int64_t guaranteed = Quota(child, pool).guaranteed;
    sum += guaranteed;
    items.push_back({guaranteed, guaranteed});
  }
  const std::int64_t above = Quota(parent, pool).guaranteed;
  if (sum <= above) return;
  // Of a parent whose own guarantee was lowered, only the parent is told.
  const std::int64_t said = parent == kRootQueue ? above : *Own(parent, pool).guaranteed;
  const bool is_fault = parent == kRootQueue || (Quota(parent, pool).field >= 0 && sum > said);
  const std::vector<std::int64_t> fitting = MaxMin(above, items);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::int64_t guaranteed = std::exchange(Quota(children[i], pool).guaranteed, fitting[i]);
    if (is_fault && guaranteed > 0) NoteTooMuch(children[i], pool, sum, said);
  }
}

void QueueTreeBuilder::NoteTooMuch(QueueIndex queue, PoolIndex pool, std::int64_t sum, std::int64_t above) {
  const std::string& name = tree_.PoolAt(pool).name;
  const QueueIndex parent = tree_.ParentOf(queue);
  const bool is_root = parent == kRootQueue;
  const std::string owner = is_root ? "the pool" : "the parent " + tree_.NameOf(parent);
  const std::string among = is_root ? "the queues without parent" : "the queues below " + tree_.NameOf(parent);
  Note(queue, QuotaField(Quota(queue, pool).field, "guaranteed"),
       is_root ? QueueFaultKind::kGuaranteesExceedPool : QueueFaultKind::kGuaranteesExceedParent,
       among + " are guaranteed " + GpuCount(sum) + " in pool " + name + " together, and " + owner + " has " +
           GpuNumber(above) + ": lower guarantees by " + GpuNumber(sum - above) + " in all, or " +
           (is_root ? "add nodes" : "raise the parent's") + "; until then " + GpuNumber(Quota(queue, pool).guaranteed) +
           " are guaranteed to this queue");
}

void QueueTreeBuilder::Note(QueueIndex queue, std::string field, QueueFaultKind kind, std::string message) {
  NoteName(tree_.NameOf(queue), std::move(field), kind, std::move(message));
}

void QueueTreeBuilder::NoteName(const std::string& queue, std::string field, QueueFaultKind kind, std::string message) {
  tree_.faults_.push_back({queue, std::move(field), kind, std::move(message)});
}

}  // namespace grus
