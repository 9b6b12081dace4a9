// SPDX-License-Identifier: Apache-2.0
#include "tests//integration/world.h"

#include <algorithm>
#include <sstream>

#include "clientlib/auth/kubeconfig.h"
#include "clientlib/client/patch.h"
#include "controllers/elastic/elastic_view.h"
#include "crds/types/gpu_queue.h"
#include "crds/types/workload_profile.h"

namespace grus::testing {
namespace {

using kube::KindOf;

std::vector<const kube::Kind*> WatchedKinds() {
  return {&KindOf<api::ElasticHorovodJob>(),
          &KindOf<api::TrialJob>(),
          &KindOf<api::GpuQueue>(),
          &KindOf<api::NodePool>(),
          &KindOf<api::WorkloadProfile>(),
          &KindOf<api::PodGroup>(),
          &KindOf<api::LegacyPodGroup>(),
          &KindOf<kube::Pod>(),
          &KindOf<kube::StatefulSet>(),
          &KindOf<kube::Job>(),
          &KindOf<kube::Service>(),
          &KindOf<kube::ConfigMap>(),
          &KindOf<kube::Secret>(),
          &KindOf<kube::NetworkPolicy>(),
          &KindOf<kube::Event>(),
          &KindOf<kube::Node>(),
          &KindOf<kube::PersistentVolumeClaim>(),
          &KindOf<ServiceAccount>(),
          &KindOf<CustomResourceDefinition>()};
}

std::unique_ptr<kube::CurlTransport> MakeTransport(const kube::ClientConfig& config, const kube::Clock& clock) {
  kube::TransportOptions options;
  options.server = config.server;
  options.ca_pem = config.ca_pem;
  options.cert_pem = config.cert_pem;
  options.key_pem = config.key_pem;
  return Must(kube::CurlTransport::Create(std::move(options), clock));
}

void DescribePod(std::ostream& out, const kube::Pod& pod) {
  out << "  pod " << pod.metadata.name << " " << pod.status.phase
      << " node=" << (pod.spec.node_name.empty() ? "-" : pod.spec.node_name.view());
  if (pod.metadata.is_being_deleted()) out << " deleting";
  if (!pod.spec.scheduling_gates.empty()) out << " gated";
  for (const kube::CoreCondition& c : pod.status.conditions) {
    if (c.type == "Ready" && c.is_true()) out << " ready";
    if (c.type == "PodScheduled" && !c.is_true()) out << " " << c.reason << " since " << ToText(c.last_transition_time);
  }
  if (!pod.status.nominated_node_name.empty()) out << " nominated=" << pod.status.nominated_node_name.view();
  out << " uid=" << pod.metadata.uid << "\n";
}

void DescribeGroup(std::ostream& out, const char* what, const api::PodGroup& group) {
  const kube::Json json = FromText(kube::EncodeObject(KindOf<api::PodGroup>(), group));
  const kube::Json* status = json.Find("status");
  out << "  " << what << " " << group.metadata.name << " minMember=" << group.spec.min_member << " "
      << (status ? ToText(*status) : "no status") << "\n";
}

}  // namespace

std::string Describe(const Step& step) {
  const kube::Object& object = step.after ? *step.after : *step.before;
  std::string text = std::string(step.kind->kind) + " " + object.metadata.name + " at version " +
                     std::string(object.metadata.resource_version) + ": ";
  if (!step.after) return text + "deleted";
  if (!step.before) return text + "created";
  const auto json = [&](const kube::Object& o) { return FromText(kube::EncodeObject(*step.kind, o)); };
  return text + ToText(kube::MergePatchBetween(json(*step.before), json(*step.after)));
}

World::World()
    : log_(kube::LogLevel::kWarn),
      config_(Must(kube::LoadKubeconfig({}))),
      transport_(MakeTransport(config_, clock_)),
      client_(*transport_, nullptr, clock_, {.user_agent = "grus-integration-test", .field_manager = "tester"}),
      observer_(client_, clock_, log_, WatchedKinds()) {
  Must(observer_.Start(
      [this](const kube::Kind& kind, const kube::Change& change) {
        std::lock_guard lock(mutex_);
        steps_.push_back({&kind, change.before, change.after});
      },
      kLimit));
}

kube::HttpResponse World::Send(const std::string& method, const std::string& path, const std::string& content_type,
                               const std::string& body, const std::string& accept) {
  kube::HttpRequest request;
  request.method = method;
  request.target = path;
  request.body = body;
  request.headers.emplace_back("Accept", accept);
  if (!content_type.empty()) request.headers.emplace_back("Content-Type", content_type);
  return Must(transport_->Send(request, {}));
}

std::map<std::string, std::string> World::Columns(const std::string& path) {
  const auto answer = Send("GET", path, {}, {}, "application/json;as=Table;v=v1;g=meta.k8s.io");
  const kube::Json table = Must(kube::ParseJson(answer.body));
  const kube::Json* const columns = table.At({"columnDefinitions"});
  const kube::Json* const rows = table.At({"rows"});
  if (columns == nullptr || rows == nullptr || rows->AsArray()->size() != 1) throw std::runtime_error(answer.body);
  std::map<std::string, std::string> cells;
  const auto& values = *rows->AsArray()->front().At({"cells"})->AsArray();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string* const text = values[i].AsString();
    cells[*(*columns->AsArray())[i].At({"name"})->AsString()] = text != nullptr       ? *text
                                                                : values[i].is_null() ? ""
                                                                                      : kube::ToText(values[i]);
  }
  return cells;
}

void World::AwaitSeen(const kube::Kind& kind, const kube::Object& written) {
  const kube::Store& store = observer_.Of(kind).store();
  const kube::ObjectMeta& metadata = written.metadata;
  if (!Await([&] { return !kube::IsOlder(store.resource_version(), metadata.resource_version); })) {
    throw std::runtime_error("the test's own cache did not see the write of " + metadata.Key().ToString());
  }
}

void World::Create(const kube::Kind& kind, const std::string& ns, const kube::Json& object) {
  AwaitSeen(kind, *Must(client_.Create(kind, ns, object)));
}

void World::Patch(const kube::Kind& kind, const kube::ObjectKey& key, kube::PatchType type, const kube::Json& patch,
                  const std::string& subresource) {
  kube::WriteOptions options;
  options.subresource = subresource;
  AwaitSeen(kind, *Must(client_.Patch(kind, key, type, patch, options)));
}

void World::Delete(const kube::Kind& kind, const kube::ObjectKey& key) {
  const kube::ConstObject before = observer_.Of(kind).store().Get(key);
  Must(client_.Delete(kind, key));
  const bool is_seen = !before || Await([&] {
    const kube::ConstObject now = observer_.Of(kind).store().Get(key);
    return !now || now->metadata.uid != before->metadata.uid || now->metadata.is_being_deleted();
  });
  if (!is_seen) throw std::runtime_error("the test's own cache did not see the end of " + key.ToString());
}

std::vector<Step> World::History(const std::string& ns) const {
  std::lock_guard lock(mutex_);
  std::vector<Step> steps;
  for (const Step& step : steps_) {
    if ((step.after ? step.after : step.before)->metadata.ns == ns) steps.push_back(step);
  }
  return steps;
}

bool World::AwaitChanges(const std::string& ns, std::size_t count, kube::Duration limit) {
  const std::size_t wanted = History(ns).size() + count;
  return Await([&] { return History(ns).size() >= wanted; }, limit);
}

bool World::Await(const std::function<bool()>& holds, kube::Duration limit) {
  return observer_.Await(holds, clock_.Now() + limit);
}

bool World::Stays(const std::function<bool()>& holds, kube::Duration duration) {
  return !Await([&] { return !holds(); }, duration);
}

std::string World::Describe(const std::string& ns) const {
  std::ostringstream out;
  for (const auto& job : List<api::ElasticHorovodJob>(ns)) {
    const kube::Json json = FromText(kube::EncodeObject(KindOf<api::ElasticHorovodJob>(), *job));
    const kube::Json* status = json.Find("status");
    out << "  job " << job->metadata.name << " generation=" << job->metadata.generation << " "
        << (status ? ToText(*status) : "no status") << "\n";
  }
  for (const auto& group : List<api::PodGroup>(ns)) DescribeGroup(out, "group", *group);
  for (const auto& group : List<api::LegacyPodGroup>(ns)) DescribeGroup(out, "legacy group", *group);
  for (const auto& set : List<kube::StatefulSet>(ns)) {
    out << "  set " << set->metadata.name << (set->metadata.is_being_deleted() ? " deleting" : "") << "\n";
  }
  for (const auto& map : List<kube::ConfigMap>(ns)) {
    const auto hosts = map->data.find("hosts");
    if (hosts != map->data.end()) out << "  hosts " << map->metadata.name << ": " << hosts->second << "\n";
  }
  for (const auto& job : List<kube::Job>(ns)) {
    out << "  launcher " << job->metadata.name << " active=" << job->status.active << " failed=" << job->status.failed
        << " succeeded=" << job->status.succeeded << (job->metadata.is_being_deleted() ? " deleting" : "") << "\n";
  }
  for (const auto& pod : List<kube::Pod>(ns)) DescribePod(out, *pod);
  return out.str();
}

}  // namespace grus::testing
