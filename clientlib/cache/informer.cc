// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/informer.h"

namespace kube {

class Informer::Source final : private ReflectorSink {
 public:
  Source(Informer& informer, Client& client, ReflectorOptions options, const Clock& clock, const Log& log)
      : informer_(informer),
        scope_(options.ns),
        clock_(clock),
        reflector_(client, informer.kind_, std::move(options), clock, log, *this, clock.RandomSeed()) {}

  void Start() {
    thread_ = clock_.Spawn([this](std::stop_token stop) { reflector_.Run(std::move(stop)); });
  }
  void Stop() { thread_.RequestStop(); }
  void Join() { thread_.Join(); }
  ReflectorStats stats() const { return reflector_.stats(); }

 private:
  void OnReplace(std::vector<ConstObject> objects, const std::string& resource_version) override {
    {
      std::lock_guard lock(informer_.handlers_mutex_);
      for (const Change& change : informer_.store_.Replace(std::move(objects), resource_version, scope_)) {
        informer_.Tell(change, !is_listed_);
      }
    }
    if (std::exchange(is_listed_, true)) return;
    {
      std::lock_guard lock(informer_.sync_mutex_);
      --informer_.unlisted_sources_;
    }
    Synced();
  }
  void OnPut(ConstObject object) override {
    std::lock_guard lock(informer_.handlers_mutex_);
    informer_.Tell(informer_.store_.Put(std::move(object), scope_), false);
  }
  void OnDelete(ConstObject last_state) override {
    std::lock_guard lock(informer_.handlers_mutex_);
    const Change change = informer_.store_.Remove(*last_state, scope_);
    if (change.before) informer_.Tell(change, false);
  }
  void OnBookmark(const std::string& resource_version) override { informer_.store_.Advance(resource_version, scope_); }
  void OnRefused() override { Synced(); }
  ConstObject Known(const ObjectKey& key) override { return informer_.store_.Get(key); }

  void Synced() {
    if (std::exchange(is_synced_, true)) return;
    {
      std::lock_guard lock(informer_.sync_mutex_);
      --informer_.unsynced_sources_;
    }
    informer_.sync_changed_.NotifyAll();
  }

  Informer& informer_;
  const std::string scope_;
  const Clock& clock_;
  Reflector reflector_;
  bool is_listed_ = false, is_synced_ = false;  // Read and written on the reflector's thread only.
  Thread thread_;
};

Informer::Informer(Client& client, const Kind& kind, InformerOptions options, const Clock& clock, const Log& log)
    : kind_(kind), clock_(clock) {
  if (options.namespaces.empty() || !kind.is_namespaced) options.namespaces = {""};
  for (const std::string& ns : options.namespaces) {
    ReflectorOptions one{ns, options.label_selector, options.field_selector, true, options.is_optional};
    sources_.push_back(std::make_unique<Source>(*this, client, std::move(one), clock, log));
  }
  unsynced_sources_ = unlisted_sources_ = sources_.size();
}

Informer::~Informer() { Stop(); }

void Informer::Start() {
  for (auto& source : sources_) source->Start();
}

void Informer::Stop() {
  for (auto& source : sources_) source->Stop();
}

void Informer::Join() {
  for (auto& source : sources_) source->Join();
}

void Informer::AddHandler(Handler handler) {
  std::lock_guard lock(handlers_mutex_);
  for (const ConstObject& object : store_.List()) handler(Change{nullptr, object}, true);
  handlers_.push_back(std::move(handler));
}

bool Informer::HasSynced() const {
  std::lock_guard lock(sync_mutex_);
  return unsynced_sources_ == 0;
}

bool Informer::HasList() const {
  std::lock_guard lock(sync_mutex_);
  return unlisted_sources_ == 0;
}

bool Informer::WaitForSync(TimePoint until, std::stop_token stop) const {
  std::stop_callback on_stop(stop, [this] {
    std::lock_guard lock(sync_mutex_);
    sync_changed_.NotifyAll();
  });
  std::unique_lock lock(sync_mutex_);
  while (unsynced_sources_ > 0 && !stop.stop_requested() && clock_.Now() < until) {
    clock_.WaitUntil(lock, sync_changed_, until);
  }
  return unsynced_sources_ == 0;
}

ReflectorStats Informer::stats() const {
  ReflectorStats sum;
  for (const auto& source : sources_) {
    const ReflectorStats one = source->stats();
    sum.lists += one.lists;
    sum.watches += one.watches;
    sum.events += one.events;
    sum.bad_events += one.bad_events;
    sum.failures += one.failures;
    if (!one.last_error.empty()) sum.last_error = one.last_error;
  }
  return sum;
}

void Informer::Tell(const Change& change, bool is_initial) {
  for (const Handler& handler : handlers_) handler(change, is_initial);
}

}  // namespace kube
