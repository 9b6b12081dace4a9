// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/suite.h"

#include "clientlib/model/events_v1.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/manager.h"
#include "controllers/elastic/elastic_reconciler.h"

namespace grus {
namespace {

using kube::KindOf;

constexpr char kReportingController[] = "ai.centauruscloud.io/grus-manager";

ElasticCaches MakeElasticCaches(kube::Manager& manager, const Options& options) {
  kube::InformerOptions all, ours;
  all.namespaces = ours.namespaces = options.namespaces;
  ours.label_selector = std::string(kManagedByLabel) + "=" + kManagedBy;
  return {manager.AddInformer(KindOf<api::ElasticHorovodJob>(), all),
          manager.AddInformer(KindOf<kube::Service>(), ours),
          manager.AddInformer(KindOf<kube::StatefulSet>(), ours),
          manager.AddInformer(KindOf<kube::ConfigMap>(), ours),
          manager.AddInformer(KindOf<kube::Job>(), ours),
          manager.AddInformer(KindOf<kube::Pod>(), all),
          manager.AddInformer(KindOf<kube::Node>())};
}

// Nothing is written but by the leader (rule E4), also when this process was suspended and does not know yet that its
// lease has run out. Events may still tell what it did.
class LeaderGate final : public kube::WriteGate {
 public:
  // `elector` may be null: then all is written.
  LeaderGate(kube::Client& client, const kube::LeaderElector* elector) : client_(client), elector_(elector) {
    if (elector_ != nullptr) client_.SetWriteGate(this);
  }
  ~LeaderGate() override { client_.SetWriteGate(nullptr); }

  kube::Status MayWrite(const kube::Kind& kind) const override {
    if (&kind == &KindOf<kube::Event>() || elector_->IsLeader()) return {};
    return kube::Error(kube::ErrorCode::kCancelled, "this process does not lead any more");
  }

 private:
  kube::Client& client_;
  const kube::LeaderElector* elector_;
};

}  // namespace

struct Suite::Impl {
  Impl(const Options& options, kube::Client& client, kube::LeaderElector* its_elector, const kube::Clock& clock,
       const kube::Log& log, kube::Registry& metrics, const std::string& instance)
      : elector(its_elector),
        gate(client, its_elector),
        manager(client, clock, log, metrics),
        events(client, clock, log, {kReportingController, instance}, &metrics),
        elastic(client, MakeElasticCaches(manager, options), events, clock, log) {
    kube::ControllerOptions controller;
    controller.name = "elastichorovodjob";
    controller.threads = options.reconcile_threads;
    elastic.FeedQueue(manager.AddController(elastic, controller).queue());
  }

  kube::LeaderElector* const elector;
  LeaderGate gate;  // Before all that writes.
  kube::Manager manager;
  kube::EventRecorder events;
  ElasticReconciler elastic;
};

Suite::Suite(const Options& options, kube::Client& client, kube::LeaderElector* elector, const kube::Clock& clock,
             const kube::Log& log, kube::Registry& metrics, const std::string& instance)
    : impl_(std::make_unique<Impl>(options, client, elector, clock, log, metrics, instance)) {}

Suite::~Suite() = default;

kube::Status Suite::Run(std::stop_token stop) { return impl_->manager.Run(std::move(stop), impl_->elector); }

bool Suite::IsReady() const { return impl_->manager.IsReady(); }

}  // namespace grus
