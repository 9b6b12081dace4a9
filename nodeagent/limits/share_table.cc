// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/share_table.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "nodeagent/cuda/share_files.h"
#include "nodeagent/limits/cuda_share.h"
#include "nodeagent/limits/namespace_pids.h"

namespace grus {
namespace {

namespace fs = std::filesystem;

bool HasAny(const std::vector<PartId>& ids, const std::vector<PartId>& of) {
  return std::ranges::any_of(ids, [&](const PartId& id) { return std::ranges::binary_search(of, id); });
}

}  // namespace

ShareTable::ShareTable(std::string folder, std::string proc, const kube::Clock& clock, const kube::Log& log)
    : folder_(std::move(folder)), proc_(std::move(proc)), clock_(clock), log_(log) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename();
    if (IsShareName(name) && ShareFolder(PathOf(name)).HasLimits()) needed_[name] = clock_.Now();
  }
}

Share* ShareTable::Find(const std::string& name) {
  const auto found = shares_.find(name);
  return found == shares_.end() ? nullptr : &found->second;
}

kube::Status ShareTable::Put(const std::string& name, Share share) {
  Drop(share.resource, share.ids, name);
  shares_.erase(name);
  needed_[name] = clock_.Now();
  if (kube::Status made = ShareFolder(PathOf(name)).Make({&share.limits, 1}, Now()); !made) return made;
  share.kept = std::make_shared<KeptFiles>(PathOf(name));
  Share& put = shares_.emplace(name, std::move(share)).first->second;
  SetHolder(put, put.pod, put.container);
  return {};
}

void ShareTable::Drop(PartResource resource, const std::vector<PartId>& ids, const std::string& but_name) {
  std::erase_if(shares_, [&](const auto& one) {
    if (one.first == but_name || one.second.resource != resource || !HasAny(one.second.ids, ids)) return false;
    needed_[one.first] = clock_.Now();
    const ShareFolder folder(PathOf(one.first));
    static_cast<void>(folder.WriteLimits({&one.second.limits, 1}, Now()));
    folder.RemoveAccount();  // It is most of what the folder takes.
    return true;
  });
}

void ShareTable::SetHolder(Share& share, const kube::ObjectKey& pod, const std::string& container) {
  for (auto& [name, other] : shares_) {
    if (&other != &share && other.pod == pod && other.container == container) other.pod = {};
  }
  share.pod = pod;
  share.container = container;
}

void ShareTable::NoteHeld(const std::string& name, PartResource resource, const HeldParts& holder) {
  needed_[name] = clock_.Now();
  if (Share* const share = Find(name); share != nullptr) {
    SetHolder(*share, holder.pod, holder.container);
    return;
  }
  const std::vector<PartId>& ids = holder.ids.at(resource);
  const ShareFolder folder(PathOf(name));
  if (!folder.HasAccount()) return;  // It is yet to start, after an init container that has its ids.
  // Files of another version are for a library of that version: its container runs on without us, and so within what it
  // is guaranteed.
  const kube::Result<ShareLimits> limits = folder.ReadLimits(ids.front().gpu);
  if (!limits) return;
  Share& share = shares_[name];
  share = {.resource = resource,
           .ids = ids,
           .limits = *limits,
           .use = ShareUse(limits->beside_bytes),
           .kept = std::make_shared<KeptFiles>(folder.path())};
  SetHolder(share, holder.pod, holder.container);
}

void ShareTable::RemoveOld() {
  const kube::TimePoint now = clock_.Now();
  std::erase_if(needed_, [&](const auto& one) {
    if (now - one.second < kKept) return false;
    std::error_code ignored;
    fs::remove_all(PathOf(one.first), ignored);
    shares_.erase(one.first);
    return true;
  });
}

void ShareTable::ReadSums(const std::string& name, Share& share) {
  const std::size_t entries = EntriesOf({&share.limits, 1});
  kube::Result<std::vector<AccountCopy::Gpu>> account = ShareFolder(PathOf(name)).ReadSums(entries);
  share.account = account ? std::optional(std::move(account->front())) : std::nullopt;
  share.paged_bytes = 0;
  if (account && entries > 1) {
    share.paged_bytes = std::min(account->back().memory_bytes, share.limits.paged_bytes);
    share.account->refused += account->back().refused;
  }
  share.use.NoteMemory(share.account ? share.account->memory_bytes : 0);
  if (account) return;
  if (std::exchange(share.is_unreadable_told, true)) return;
  log_.Warn("a container's account of its part of a GPU cannot be read: it has at most what it is guaranteed",
            {{"pod", share.pod.ToString()}, {"container", share.container}, {"error", account.error().message()}});
}

void ShareTable::Turn() {
  for (auto& [name, share] : shares_) ReadSums(name, share);
  Lend();
  for (auto& [name, share] : shares_) {
    share.limits.beside_bytes = share.use.beside_bytes();
    // Errors: whoever may change the folder has done so. The container keeps what it has.
    static_cast<void>(ShareFolder(PathOf(name)).WriteLimits({&share.limits, 1}, Now()));
  }
}

void ShareTable::Lend() {
  std::map<std::string, std::pair<std::vector<TimeUse>, std::vector<Share*>>> by_gpu;
  for (auto& [name, share] : shares_) {
    share.limits.rate_milli = cuda::kWholeGpu;
    if (share.limits.milli == 0) continue;
    auto& [uses, shares] = by_gpu[share.limits.gpu];
    TimeUse& use = uses.emplace_back(TimeUse{.container = name, .milli = share.limits.milli, .busy = {}});
    shares.push_back(&share);
    if (!share.account) continue;  // As if it were idle: it gets no more than what it is guaranteed.
    use.charged = static_cast<std::uint64_t>(std::max<std::int64_t>(share.account->charged.count(), 0));
    use.waited = static_cast<std::uint64_t>(std::max<std::int64_t>(share.account->waited.count(), 0));
    use.busy = std::move(share.account->busy);
  }
  std::erase_if(lending_, [&](const auto& one) { return !by_gpu.contains(one.first); });
  const auto now = static_cast<std::uint64_t>(Now().count());
  for (auto& [gpu, parts] : by_gpu) {
    const std::vector<std::uint32_t> rates = lending_[gpu].Rates(now, parts.first);
    for (std::size_t i = 0; i < rates.size(); ++i) parts.second[i]->limits.rate_milli = rates[i];
  }
}

std::optional<std::vector<DriverProcess>> ShareTable::ProcessesOf(const Share& share, const NodeSample& look) const {
  const auto state = std::ranges::find(look.gpus, share.limits.gpu, [](const GpuState& one) { return one.gpu.uuid; });
  if (share.pod.name.empty() || state == look.gpus.end() || !state->sample) return std::nullopt;
  std::vector<DriverProcess> processes;
  for (const ProcessSample& process : state->processes) {
    const PodName& name = process.owner->name;
    if (name.ns != share.pod.ns || name.pod != share.pod.name) continue;
    if (!name.container.empty() && name.container != share.container) continue;
    if (name.container.empty() || !process.usage.memory_bytes) return std::nullopt;
    processes.push_back({NamespacePids(proc_, process.usage.pid), *process.usage.memory_bytes});
  }
  return processes;
}

void ShareTable::NoteLook(const NodeSample& look) {
  for (auto& [name, share] : shares_) {
    if (const std::optional<std::vector<DriverProcess>> processes = ProcessesOf(share, look)) {
      // Without what is paged: as far as is known the driver says nothing of that, and whoever says that much is paged
      // could hide as much that is not.
      const kube::Result<AccountCopy> account = ShareFolder(PathOf(name)).ReadAccount(1);
      share.use.NoteLook(*processes, account ? account->processes : std::vector<AccountCopy::Process>(), look.at);
      TellEscape(share);
    }
  }
}

void ShareTable::TellEscape(Share& share) {
  const bool has_escaped = share.use.escaped_bytes() > 0;
  if (std::exchange(share.is_escape_told, has_escaped) || !has_escaped) return;
  log_.Warn("a container has more of a GPU than its account says: programs in it go round their limits",
            {{"pod", share.pod.ToString()},
             {"container", share.container},
             {"gpu", share.limits.gpu},
             {"bytes", share.use.escaped_bytes()}});
}

std::map<std::string, std::shared_ptr<KeptFiles>> ShareTable::FilesByName() const {
  std::map<std::string, std::shared_ptr<KeptFiles>> files;
  for (const auto& [name, share] : shares_) files.emplace(name, share.kept);
  return files;
}

void ShareTable::NoteCut(const std::string& name, const KeptFiles* kept, const kube::Result<bool>& cut) {
  Share* const share = Find(name);
  if (share == nullptr || share->kept.get() != kept || (cut && !*cut)) return;
  if (!cut && !std::exchange(share->is_uncut_told, true)) {
    log_.Warn("a container has made its account of a GPU longer than it is, and it cannot be cut",
              {{"pod", share->pod.ToString()}, {"container", share->container}, {"error", cut.error().message()}});
  }
  if (cut && !std::exchange(share->is_growth_told, true)) {
    log_.Warn("a container has made its account of a GPU longer than it is, it is cut",
              {{"pod", share->pod.ToString()}, {"container", share->container}});
  }
}

}  // namespace grus
