// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/suite.h"

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

}  // namespace

struct Suite::Impl {
  Impl(const Options& options, kube::Client& client, const kube::Clock& clock, const kube::Log& log,
       kube::Registry& metrics, const std::string& instance)
      : manager(client, clock, log, metrics),
        events(client, clock, log, {kReportingController, instance}, &metrics),
        elastic(client, MakeElasticCaches(manager, options), events, clock, log) {
    kube::ControllerOptions controller;
    controller.name = "elastichorovodjob";
    controller.threads = options.reconcile_threads;
    elastic.FeedQueue(manager.AddController(elastic, controller).queue());
  }

  kube::Manager manager;
  kube::EventRecorder events;
  ElasticReconciler elastic;
};

Suite::Suite(const Options& options, kube::Client& client, const kube::Clock& clock, const kube::Log& log,
             kube::Registry& metrics, const std::string& instance)
    : impl_(std::make_unique<Impl>(options, client, clock, log, metrics, instance)) {}

Suite::~Suite() = default;

kube::Status Suite::Run(std::stop_token stop, kube::LeaderElector* elector) {
  return impl_->manager.Run(std::move(stop), elector);
}

bool Suite::IsReady() const { return impl_->manager.IsReady(); }

}  // namespace grus
