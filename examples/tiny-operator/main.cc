// SPDX-License-Identifier: Apache-2.0
// Keeps a copy of each ConfigMap that has the label example.com/mirror-to=NAME, under that name.
#include <cstdio>

#include "clientlib/client/connection.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/manager.h"
#include "clientlib/runtime/shutdown.h"

namespace {

constexpr char kLabel[] = "example.com/mirror-to";

class Mirror final : public kube::Reconciler {
 public:
  Mirror(kube::Client& client, const kube::Informer& sources) : client_(client), sources_(sources) {}

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override {
    using kube::Json;
    const auto source = sources_.Get<kube::ConfigMap>(key);
    // Deleted: the garbage collector deletes the copy through its owner reference.
    if (!source || source->metadata.is_being_deleted()) return kube::Action::AwaitChange();
    const std::string name(source->metadata.Label(kLabel));
    const Json owner = Json::MakeObject({{"apiVersion", "v1"},
                                         {"kind", "ConfigMap"},
                                         {"name", source->metadata.name},
                                         {"uid", std::string(source->metadata.uid)}});
    const Json copy = Json::MakeObject(
        {{"apiVersion", "v1"},
         {"kind", "ConfigMap"},
         {"metadata",
          Json::MakeObject({{"name", name}, {"namespace", key.ns}, {"ownerReferences", Json::MakeArray({owner})}})},
         {"data", source->data_json()}});
    kube::WriteOptions apply;
    apply.field_manager = "tiny-operator";
    apply.force = true;
    auto applied = client_.Apply(kube::KindOf<kube::ConfigMap>(), {key.ns, name}, copy, apply, stop);
    if (!applied) return std::move(applied).error().with("copy " + key.ToString());  // Tried again with backoff.
    std::printf("%s is copied to %s\n", key.ToString().c_str(), name.c_str());
    std::fflush(stdout);
    return kube::Action::AwaitChange();
  }

 private:
  kube::Client& client_;
  const kube::Informer& sources_;
};

}  // namespace

int main() {
  const kube::SignalStop signals;  // First: it takes SIGINT and SIGTERM for all threads.
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kInfo);
  kube::Registry metrics;
  auto connection = kube::Connect({.user_agent = "tiny-operator"}, clock);
  if (!connection) {
    log.Error(connection.error().message());
    return 1;
  }
  kube::Client& client = *(*connection)->client;
  kube::Manager manager(client, clock, log, metrics);
  kube::InformerOptions labelled;
  labelled.label_selector = kLabel;
  kube::Informer& sources = manager.AddInformer(kube::KindOf<kube::ConfigMap>(), labelled);
  Mirror mirror(client, sources);
  kube::WorkQueue& queue = manager.AddController(mirror, {.name = "mirror"}).queue();
  sources.AddHandler([&](const kube::Change& change, bool) { queue.Add(change.Any().metadata.Key()); });
  const kube::Status ran = manager.Run(signals.token());
  if (!ran) log.Error(ran.error().message());
  return ran ? 0 : 1;
}
