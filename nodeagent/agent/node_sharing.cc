// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/agent/node_sharing.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "clientlib/base/wait.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/dra/slice_writer.h"
#include "nodeagent/sharing/part_writer.h"

namespace grus {
namespace {

constexpr kube::Duration kLook = std::chrono::seconds(1), kRetry = std::chrono::seconds(5);
constexpr kube::Duration kCleanAgain = std::chrono::minutes(10);

}  // namespace

// The plugins of one mode, or the slice, the kubelet's view of them, and what pods are told, each on a thread of its
// own.
struct NodeSharing::Way {
  Way(NodeSharing& sharing, SharingMode mode)
      : plugins(sharing.holders_, sharing.pending_,
                {.mode = mode,
                 .reserve_mib = sharing.options_.reserve_mib,
                 .on_devices_changed = [this] { host.NotifyChanged(); },
                 .on_start = [this] { writer.Wake(); },
                 .holders_otherwise = [&sharing] { return sharing.prepared_.Holders(); },
                 .enforcer = &sharing.enforcers_},
                sharing.clock_, sharing.log_),
        host(plugins.plugins(), sharing.options_.plugin_folder, sharing.clock_, sharing.log_),
        watch(sharing.newest_, sharing.clock_, sharing.options_.own_pod),
        writer(
            sharing.client_, sharing.pods_, sharing.holders_, plugins, sharing.clock_, sharing.log_,
            [&sharing](const std::string& id) { return sharing.prepared_.PartsOf(id); }, &watch) {
    if (mode != SharingMode::kDra) return;
    const std::string& node = sharing.options_.node_name;
    live_slices = std::make_unique<kube::Informer>(sharing.client_, kube::KindOf<NodeSlice>(),
                                                   SliceWriter::CacheOptions(node), sharing.clock_, sharing.log_);
    live_slices->Start();
    slices = std::make_unique<SliceWriter>(
        sharing.client_, *live_slices, node, [this] { return plugins.gpus(); }, sharing.holders_, sharing.clock_,
        sharing.log_);
  }

  void Start(const kube::Clock& clock) {
    serving = clock.Spawn([this](const std::stop_token& stop) { slices ? slices->Run(stop) : host.Run(stop); });
    writing = clock.Spawn([this](const std::stop_token& stop) { writer.Run(stop); });
  }

  PartPlugins plugins;
  PluginHost host;
  PartWatch watch;
  PartWriter writer;
  // Null: device plugins give the parts.
  std::unique_ptr<kube::Informer> live_slices = nullptr;
  std::unique_ptr<SliceWriter> slices = nullptr;
  std::shared_ptr<const NodeSample> seen;
  std::atomic<bool> has_looked = false;
  kube::Thread serving, writing;  // End first: they use the others.
};

NodeSharing::NodeSharing(kube::Client& client, NewestLook newest, const NodePods& pods, NodeSharingOptions options,
                         const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      newest_(std::move(newest)),
      pods_(pods),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      holders_(options_.pod_resources_socket),
      mps_(WholeMpsOptions(), holders_, clock, log),
      cuda_(WholeCudaOptions(), holders_, newest_, clock, log),
      pending_(pods, clock),
      prepared_(options_.cdi_folder),
      claims_(client, prepared_,
              {.name = options_.node_name,
               .gpus = [this] { return Gpus(); },
               .holders_otherwise = [this] { return HoldersOfDevices(); }},
              log),
      claim_host_(claims_, options_.plugin_registry, clock, log) {}

NodeSharing::~NodeSharing() = default;

std::optional<SharingMode> NodeSharing::ReadMode(const std::stop_token& stop) {
  const auto node = client_.Get<kube::Node>({"", options_.node_name}, stop);
  if (!node) {
    if (node.error().code() != kube::ErrorCode::kCancelled && news_.IsNews(node.error(), clock_.Now())) {
      log_.Warn("it is not known in which way this node shares its GPUs, trying again",
                {{"error", node.error().message()}});
    }
    return std::nullopt;
  }
  news_.Reset();
  ReadPlacement(**node);
  const kube::Result<SharingMode> mode = SharingModeOf((*node)->metadata);
  const std::string problem = mode ? std::string() : mode.error().message();
  if (std::exchange(told_, problem) != problem && !problem.empty()) {
    log_.Warn("no parts of GPUs are offered", {{"error", problem}});
  }
  const SharingMode known = mode ? *mode : SharingMode::kNone;
  ReadEnforcement(**node, known);
  // Whatever the label: a container that was held when it was given its part starts again so.
  is_paging_read_ = known == SharingMode::kNone || ReadPaging(**node, stop);
  return known;
}

void NodeSharing::ReadPlacement(const kube::Node& node) {
  const kube::Result<PartPlacement> placement = PlacementOf(node.metadata);
  const std::string problem = placement ? std::string() : placement.error().message();
  if (std::exchange(told_of_placement_, problem) != problem && !problem.empty()) {
    log_.Warn("parts of GPUs are packed", {{"error", problem}});
  }
  placement_ = placement ? *placement : PartPlacement::kPack;
}

void NodeSharing::ReadEnforcement(const kube::Node& node, SharingMode mode) {
  const kube::Result<Enforcement> asked = AskedEnforcement(node.metadata);
  const kube::Status checked = asked ? CheckEnforcement(*asked, mode) : kube::Status(asked.error());
  const std::string problem = checked ? std::string() : checked.error().message();
  if (std::exchange(told_of_enforcement_, problem) != problem && !problem.empty()) {
    log_.Warn("nothing holds containers to their parts of GPUs", {{"error", problem}});
  }
  const Enforcement way = checked && mode != SharingMode::kNone ? *asked : Enforcement::kNone;
  mps_.Want(way == Enforcement::kMps);
  cuda_.Want(way == Enforcement::kCooperative);
}

bool NodeSharing::ReadPaging(const kube::Node& node, const std::stop_token& stop) {
  const auto list = client_.List(kube::KindOf<PagingPool>(), "", {}, stop);
  const bool has_none = !list && list.error().code() == kube::ErrorCode::kNotFound;  // Not even the kind.
  if (!list && !has_none) {
    if (list.error().code() == kube::ErrorCode::kCancelled) return false;
    if (pool_news_.IsNews(list.error(), clock_.Now())) {
      log_.Warn("what NodePools allow of over-subscribed memory is not known, trying again",
                {{"error", list.error().message()}});
    }
    if (!paging_.problem.empty()) paging_.problem = list.error().message();
    return false;
  }
  pool_news_.Reset();
  std::vector<std::shared_ptr<const PagingPool>> pools;
  if (list) {
    for (const auto& pool : list->items) pools.push_back(std::static_pointer_cast<const PagingPool>(pool));
  }
  paging_ = AllowanceOf(node.metadata.labels, pools);
  return true;
}

MpsOptions NodeSharing::WholeMpsOptions() const {
  MpsOptions whole = options_.mps;
  whole.reserve_mib = options_.reserve_mib;
  if (!options_.on_mps_fault) return whole;
  whole.on_fault = [this](const kube::ObjectKey& key, const std::string& note) {
    for (const auto& pod : pods_.List()) {
      if (pod->metadata.Key() == key) options_.on_mps_fault(*pod, note);
    }
  };
  return whole;
}

CudaOptions NodeSharing::WholeCudaOptions() const {
  CudaOptions whole = options_.cuda;
  whole.reserve_mib = options_.reserve_mib;
  return whole;
}

void NodeSharing::AddMetrics(kube::Registry& registry) const {
  mps_.AddMetrics(registry);
  cuda_.AddMetrics(registry);
}

std::vector<SharedGpu> NodeSharing::Gpus() const {
  std::lock_guard lock(mutex_);
  return way_ ? way_->plugins.gpus() : std::vector<SharedGpu>();
}

kube::Result<std::map<std::string, std::string>> NodeSharing::HoldersOfDevices() {
  const kube::Result<std::vector<HeldDevices>> held = holders_.List();
  if (!held) return held.error();
  std::vector<std::string> uuids;
  for (const SharedGpu& gpu : Gpus()) uuids.push_back(gpu.uuid);
  return HeldOtherwise(*held, {}, uuids);
}

void NodeSharing::LookAtClaims(const std::stop_token& stop) {
  const bool is_claimed = way_ && way_->plugins.mode() == SharingMode::kDra;
  const kube::TimePoint now = clock_.Now();
  claims_.Accept(is_claimed);
  if (is_claimed) has_slice_ = true;
  if (!is_claimed && is_mode_known_ && has_slice_ != false && now >= remove_slice_at_) {
    const kube::Status removed = SliceWriter::Remove(client_, options_.node_name, stop);
    // Who may not remove one has written none.
    if (removed || removed.error().code() == kube::ErrorCode::kForbidden) has_slice_ = false;
    else if (slice_news_.IsNews(removed.error(), now)) {
      log_.Warn("the node's ResourceSlice cannot be removed, trying again", {{"error", removed.error().message()}});
    }
    remove_slice_at_ = now + options_.read_again;
  }
  if (is_mode_known_ && now >= clean_at_) {
    claims_.RemoveStale(stop);
    clean_at_ = now + kCleanAgain;
  }
  // A kubelet asks to take back also what was refused, and its pod cannot end before that.
  const auto has_claims = [](const auto& pod) { return !pod->spec.resource_claims.empty(); };
  const bool may_be_asked = serving_claims_ && std::ranges::any_of(pods_.List(), has_claims);
  const bool serves = is_claimed || may_be_asked || !prepared_.List().empty();
  if (serves && !serving_claims_) {
    serving_claims_ = clock_.Spawn([this](const std::stop_token& end) { claim_host_.Run(end); });
  } else if (!serves && serving_claims_) {
    serving_claims_.reset();
  }
}

void NodeSharing::Follow(SharingMode mode) {
  {
    std::lock_guard lock(mutex_);
    is_mode_known_ = true;
    was_alnair_ |= mode == SharingMode::kAlnair;
  }
  if ((way_ ? way_->plugins.mode() : SharingMode::kNone) == mode) return;
  std::unique_ptr<Way> next = mode == SharingMode::kNone ? nullptr : std::make_unique<Way>(*this, mode);
  {
    std::lock_guard lock(mutex_);
    way_.swap(next);
  }
  next.reset();  // The old plugins end before the new ones are served.
  log_.Info("parts of GPUs", {{"mode", mode == SharingMode::kNone ? "none" : NameOf(mode)}});
  if (!way_) return;
  SetUpPlugins();
  way_->Start(clock_);
}

void NodeSharing::SetUpPlugins() {
  way_->plugins.SetPlacement(placement_);
  way_->plugins.SetPaging(paging_);
}

void NodeSharing::LookOnce(const std::stop_token& stop) {
  const kube::TimePoint now = clock_.Now();
  if (now >= read_at_) {
    const std::optional<SharingMode> mode = ReadMode(stop);
    if (mode) Follow(*mode);
    if (way_) SetUpPlugins();
    read_at_ = now + (mode && is_paging_read_ ? options_.read_again : kRetry);
  }
  LookAtClaims(stop);
  const auto look = newest_();
  if (look) mps_.See(*look);
  if (!way_ || !look || look == way_->seen) return;
  way_->plugins.Look(*look);
  way_->seen = look;
  way_->has_looked = true;
}

void NodeSharing::Run(const std::stop_token& stop) {
  const kube::Thread serving_mps = clock_.Spawn([this](const std::stop_token& end) { mps_.Run(end); });
  const kube::Thread lending = clock_.Spawn([this](const std::stop_token& end) { cuda_.Run(end); });
  do LookOnce(stop);
  while (kube::WaitFor(clock_, kLook, stop));
  serving_claims_.reset();
  Follow(SharingMode::kNone);
}

std::shared_ptr<const GivenParts> NodeSharing::newest_parts() const {
  std::lock_guard lock(mutex_);
  return way_ ? way_->watch.newest() : nullptr;
}

AnnotationTexts NodeSharing::NodeAnnotations() const {
  std::lock_guard lock(mutex_);
  if (!is_mode_known_ || (way_ && !way_->has_looked)) return {};
  AnnotationTexts texts = way_ ? NodePartAnnotations(way_->plugins.mode(), way_->plugins.gpus())
                               : NodePartAnnotations(SharingMode::kNone, {});
  // The original's own plugin may have written these here.
  if (!was_alnair_) std::erase_if(texts, [](const auto& text) { return text.first != api::kGpuInventoryAnnotation; });
  return texts;
}

}  // namespace grus
