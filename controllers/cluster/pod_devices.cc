// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/pod_devices.h"

#include <algorithm>
#include <utility>

#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/cluster_objects.h"

namespace grus {
namespace {

using kube::DeviceClass;
using kube::ObjectKey;
using kube::ResourceClaim;
using kube::ResourceClaimTemplate;
using kube::ResourceSlice;

constexpr char kAnyClaim[] = "*", kClaim[] = "claim/", kTemplate[] = "template/";

// `kind`: kClaim or kTemplate.
std::string KeyOf(const char* kind, const ObjectKey& object) { return kind + object.ToString(); }

// The name of the claim that the reference means; empty: it is not created yet.
std::string_view ClaimNameOf(const kube::Pod& pod, const kube::PodResourceClaim& reference) {
  if (!reference.resource_claim_name.empty()) return reference.resource_claim_name.view();
  if (!pod.status.resource_claim_statuses) return {};
  for (const kube::PodResourceClaimStatus& made : *pod.status.resource_claim_statuses) {
    if (made.name == reference.name) return made.resource_claim_name.view();
  }
  return {};
}

std::string PoolKey(const ResourceSlice& slice) { return slice.spec.driver.str() + "/" + slice.spec.pool.name.str(); }

// The GPUs of nodes of which the claim has parts, by grus' own driver: node and device.
std::set<std::pair<std::string, std::string>> ClaimedGpus(const ResourceClaim& claim) {
  std::set<std::pair<std::string, std::string>> gpus;
  if (!claim.status.allocation) return gpus;
  for (const kube::DeviceAllocation& result : claim.status.allocation->devices.results) {
    if (result.driver.view() == kGpuClaimDriver && !result.admin_access) {
      gpus.emplace(result.pool.str(), result.device.str());
    }
  }
  return gpus;
}

std::vector<std::string> NodesOfClaim(const kube::Object& claim) {
  std::vector<std::string> nodes;
  for (const auto& [node, device] : ClaimedGpus(static_cast<const ResourceClaim&>(claim))) {
    if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
  }
  return nodes;
}

// Whether the pod for which the claim counts is the same. A claim's status changes for other reasons, too.
bool IsSameToConsumers(const ResourceClaim& a, const ResourceClaim& b) {
  const auto &x = a.status.reserved_for, &y = b.status.reserved_for;
  return a.metadata.uid == b.metadata.uid && (x.empty() ? y.empty() : !y.empty() && x.front() == y.front());
}

}  // namespace

std::vector<std::string> DeviceKeysOf(const kube::Object& object) {
  const auto& pod = static_cast<const kube::Pod&>(object);
  if (!pod.spec.resource_claims) return {};
  std::vector<std::string> keys = {kAnyClaim};
  if (pod.spec.resource_claims->size() > kMostClaimedParts) return keys;  // Its claims do not matter any more.
  for (const kube::PodResourceClaim& reference : *pod.spec.resource_claims) {
    const std::string made_of(reference.resource_claim_template_name), claim(ClaimNameOf(pod, reference));
    if (!made_of.empty()) keys.push_back(KeyOf(kTemplate, {pod.metadata.ns, made_of}));
    if (!claim.empty()) keys.push_back(KeyOf(kClaim, {pod.metadata.ns, claim}));
  }
  return keys;
}

PodDevices::PodDevices(Caches caches, const kube::Log& log)
    : caches_(caches),
      log_(log),
      slices_by_node_(caches.slices.AddIndex([](const kube::Object& slice) -> std::vector<std::string> {
        return {static_cast<const ResourceSlice&>(slice).spec.node_name.str()};
      })),
      slices_by_pool_(caches.slices.AddIndex([](const kube::Object& slice) -> std::vector<std::string> {
        return {PoolKey(static_cast<const ResourceSlice&>(slice))};
      })),
      claims_by_node_(caches.claims.AddIndex(NodesOfClaim)) {
  caches.claims.AddHandler([this](const kube::Change& change, bool) { OnResourceClaim(change); });
  caches.templates.AddHandler([this](const kube::Change& change, bool) { OnTemplate(change); });
  caches.classes.AddHandler([this](const kube::Change& change, bool) { OnClass(change); });
  caches.slices.AddHandler([this](const kube::Change& change, bool) { OnSlice(change); });
  if (caches.unhealthy_gpus == nullptr) return;
  caches.unhealthy_gpus->AddHandler([this](const kube::Change& change, bool) { OnUnhealthyGpus(change); });
}

void PodDevices::OnResourceClaim(const kube::Change& change) {
  const auto* before = static_cast<const ResourceClaim*>(change.before.get());
  const auto* after = static_cast<const ResourceClaim*>(change.after.get());
  const auto gpus_before = before ? ClaimedGpus(*before) : std::set<std::pair<std::string, std::string>>();
  const auto gpus_after = after ? ClaimedGpus(*after) : std::set<std::pair<std::string, std::string>>();
  if (gpus_before != gpus_after) {
    std::set<std::string> nodes;
    for (const auto* gpus : {&gpus_before, &gpus_after}) {
      for (const auto& [node, device] : *gpus) nodes.insert(node);
    }
    for (const std::string& node : nodes) {
      for (const auto& tell : on_node_) tell(node);
    }
  }
  if (before && after) {
    DeviceNeeds was, is;
    AddClaim(*before, nullptr, was);
    AddClaim(*after, nullptr, is);
    // The devices count for the first pod that the claim is reserved for.
    if (was == is && (!before->status.allocation || IsSameToConsumers(*before, *after))) return;
  }
  for (const auto& tell : on_needs_) tell(KeyOf(kClaim, change.Any().metadata.Key()));
}

void PodDevices::OnTemplate(const kube::Change& change) {
  const auto* before = static_cast<const ResourceClaimTemplate*>(change.before.get());
  const auto* after = static_cast<const ResourceClaimTemplate*>(change.after.get());
  if (before && after && before->spec == after->spec) return;
  for (const auto& tell : on_needs_) tell(KeyOf(kTemplate, change.Any().metadata.Key()));
}

void PodDevices::OnClass(const kube::Change& change) {
  const auto* before = static_cast<const DeviceClass*>(change.before.get());
  const auto* after = static_cast<const DeviceClass*>(change.after.get());
  if (before && after && before->spec == after->spec) return;
  const std::string& name = change.Any().metadata.name;
  {
    std::lock_guard lock(mutex_);
    if (after == nullptr) {
      classes_.erase(name);
    } else {
      Class& its_class = classes_[name] = {
          DeviceFilter::Read(after->spec), after->spec.extended_resource_name.str(), {}, DriverOf(after->spec), {}};
      std::set<std::string> nodes;
      for (const auto& slice : caches_.slices.List<ResourceSlice>()) {
        NoteSlice(slice->metadata.name, slice.get(), its_class);
        nodes.insert(slice->spec.node_name.str());
      }
      for (const std::string& node : nodes) CountDevicesOf(node, its_class);
    }
  }
  if (after && !DeviceFilter::Read(after->spec) && DriverOf(after->spec) != kGpuClaimDriver) {
    log_.Warn("devices of a class are not counted: its selector is not understood", {{"class", name}});
  }
  TellAll();
}

void PodDevices::NoteSlice(const std::string& name, const ResourceSlice* slice, Class& its_class) {
  const bool is_uncountable =
      slice && its_class.filter && std::ranges::any_of(slice->spec.devices, [&](const kube::Device& device) {
        return !IsCountable(slice->spec, device) && its_class.filter->Selects(slice->spec.driver.view(), device);
      });
  if (is_uncountable) its_class.uncountable_slices.insert(name);
  else its_class.uncountable_slices.erase(name);
}

void PodDevices::OnSlice(const kube::Change& change) {
  const auto* before = static_cast<const ResourceSlice*>(change.before.get());
  const auto* after = static_cast<const ResourceSlice*>(change.after.get());
  if (before && after && before->spec == after->spec) return;
  std::set<std::string> nodes;
  for (const ResourceSlice* slice : {before, after}) {
    if (slice == nullptr) continue;
    nodes.insert(slice->spec.node_name.str());
    for (const auto& other : caches_.slices.ByIndex<ResourceSlice>(slices_by_pool_, PoolKey(*slice))) {
      nodes.insert(other->spec.node_name.str());
    }
  }
  bool counts_change = false, most_changes = false;
  {
    std::lock_guard lock(mutex_);
    counts_change = !std::exchange(has_seen_slice_, true);
    const std::string& name = change.Any().metadata.name;
    const auto slice = caches_.slices.Get<ResourceSlice>({"", name});
    for (auto& [class_name, its_class] : classes_) {
      const bool did_count = its_class.Counts();
      NoteSlice(name, slice.get(), its_class);
      for (const std::string& node : nodes) most_changes |= CountDevicesOf(node, its_class);
      if (its_class.Counts() == did_count) continue;
      counts_change = true;
      if (!did_count) continue;
      log_.Warn("devices of a class are not counted: some are shared, parts of others, or not tied to one node",
                {{"class", class_name}, {"slice", name}});
    }
  }
  if (counts_change) return TellAll();
  for (const std::string& node : nodes) {
    if (node.empty()) continue;
    for (const auto& tell : on_node_) tell(node);
  }
  if (!most_changes) return;
  for (const auto& tell : on_needs_) tell(kAnyClaim);
}

void PodDevices::TellAll() const {
  for (const auto& tell : on_node_) tell("");
  for (const auto& tell : on_needs_) tell(kAnyClaim);
}

void PodDevices::AddOf(std::string_view name, std::int64_t count, DeviceNeeds& needs) const {
  std::lock_guard lock(mutex_);
  const auto found = classes_.find(name);
  if (found == classes_.end()) {
    if (needs.problem.empty() && caches_.classes.HasList()) {
      needs.problem = "DeviceClass " + std::string(name) + " does not exist";
    }
  } else if (count > 0 && found->second.Counts() && (has_seen_slice_ || caches_.slices.HasList())) {
    needs.devices.AddExtended(kDeviceClassPrefix + found->first, count);
    const std::string& also = found->second.extended_resource;
    if (!also.empty()) needs.devices.AddExtended(also, count);
  }
}

DeviceNeeds PodDevices::NeedsOf(const kube::Pod& pod) const {
  DeviceNeeds needs;
  if (!pod.spec.resource_claims) return needs;
  const auto miss = [&needs](const kube::Informer& kind, const ObjectKey& key) {
    if (!kind.HasList() || !needs.problem.empty()) return;
    needs.problem = std::string(kind.kind().kind) + " " + key.ToString() + " does not exist";
  };
  if (pod.spec.resource_claims->size() > kMostClaimedParts) {
    needs.problem = "it lists " + std::to_string(pod.spec.resource_claims->size()) + " claims; at most " +
                    std::to_string(kMostClaimedParts) + " are looked at";
    AddTooManyClaims(needs.devices);
    return needs;
  }
  std::set<std::string> seen;  // A pod may name one claim twice.
  for (const kube::PodResourceClaim& reference : *pod.spec.resource_claims) {
    const ObjectKey claim_key{pod.metadata.ns, std::string(ClaimNameOf(pod, reference))};
    if (!claim_key.name.empty() && !seen.insert(claim_key.name).second) continue;
    if (const auto claim = claim_key.name.empty() ? nullptr : caches_.claims.Get<ResourceClaim>(claim_key)) {
      const auto& consumers = claim->status.reserved_for;
      const bool is_others =
          claim->status.allocation && !consumers.empty() && consumers.front().uid != pod.metadata.uid;
      if (!is_others) AddClaim(*claim, &pod.spec.node_name, needs);
      continue;
    }
    if (reference.resource_claim_template_name.empty()) {
      miss(caches_.claims, claim_key);
      continue;
    }
    const ObjectKey template_key{pod.metadata.ns, reference.resource_claim_template_name.str()};
    if (const auto made_of = caches_.templates.Get<ResourceClaimTemplate>(template_key)) {
      AddRequested(made_of->spec.spec, needs);
    } else {
      miss(caches_.templates, template_key);
    }
  }
  if (needs.parts > kMostClaimedParts) {
    needs.problem = "its claims ask for more than " + std::to_string(kMostClaimedParts) + " parts of GPUs";
    needs.devices = {};
    AddTooManyClaims(needs.devices);
  }
  return needs;
}

bool PodDevices::IsCurrent(const ResourceSlice& slice) const {
  const kube::ResourcePool& pool = slice.spec.pool;
  std::int64_t count = 0;
  for (const auto& other : caches_.slices.ByIndex<ResourceSlice>(slices_by_pool_, PoolKey(slice))) {
    if (other->spec.pool.generation > pool.generation) return false;
    if (other->spec.pool.generation == pool.generation) ++count;
  }
  return count == pool.slice_count;
}

void PodDevices::AddDevicesOf(const std::string& node, Resources& allocatable) const {
  const auto slices = caches_.slices.ByIndex<ResourceSlice>(slices_by_node_, node);
  if (slices.empty()) return;
  Resources devices;
  std::int64_t whole = 0;
  for (const auto& slice : slices) {
    if (IsCurrent(*slice)) AddGpusOf(*slice, whole, devices);
  }
  std::lock_guard lock(mutex_);
  for (const auto& [name, its_class] : classes_) {
    if (!its_class.Counts()) continue;
    std::int64_t count = 0;
    for (const auto& slice : slices) {
      if (!IsCurrent(*slice)) continue;
      count += std::ranges::count_if(slice->spec.devices, [&](const kube::Device& device) {
        return IsUsable(device) && its_class.filter->Selects(slice->spec.driver.view(), device);
      });
    }
    if (count == 0) continue;
    devices.AddExtended(kDeviceClassPrefix + name, count);
    // The count of a device plugin wins.
    const std::string& also = its_class.extended_resource;
    if (!also.empty() && allocatable.Extended(also) == 0 && devices.Extended(also) == 0) {
      devices.AddExtended(also, count);
    }
  }
  if (allocatable.Extended(kGpuResource) == 0) {
    devices.AddExtended(kGpusByClaims, std::max<std::int64_t>(whole - devices.Extended(kGpuResource), 0));
  }
  allocatable += devices;
}

void PodDevices::WithholdClaimed(const std::string& node, Resources& allocatable) const {
  std::set<std::string> devices;
  for (const auto& claim : caches_.claims.ByIndex<ResourceClaim>(claims_by_node_, node)) {
    for (const auto& [its_node, device] : ClaimedGpus(*claim)) {
      if (its_node == node) devices.insert(device);
    }
  }
  if (!devices.empty()) WithholdClaimedGpus(devices, allocatable);
}

Resources RequestOf(const kube::Pod& pod, const PodDevices* devices) {
  Resources request = RequestOf(pod);
  if (devices && pod.spec.resource_claims) request += devices->NeedsOf(pod).devices;
  return request;
}

PodShape ShapeOf(const kube::Pod& pod, const PodDevices* devices) {
  PodShape shape = ShapeOf(pod);
  if (!devices || !pod.spec.resource_claims) return shape;
  Resources needs = devices->NeedsOf(pod).devices;
  // A shape is of all that are alike, whatever GPU this one has.
  std::erase_if(needs.extended, [](const auto& amount) { return IsOnOneGpu(amount.first); });
  shape.request += needs;
  return shape;
}

NodeState StateOf(const kube::Node& node, const PodDevices* devices) {
  NodeState state = StateOf(node);
  if (devices) {
    devices->WithholdClaimed(state.name, state.allocatable);
    devices->WithholdUnhealthy(node, state.allocatable);
    devices->AddDevicesOf(state.name, state.allocatable);
  }
  return state;
}

}  // namespace grus
