// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/plugin_host.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "nodeagent/kubelet/folder_watch.h"
#include "nodeagent/kubelet/grpc_status.h"
#include "nodeagent/kubelet/kept_plugin.h"
#include "nodeagent/kubelet/registration.h"

namespace grus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr kube::BackoffPolicy kFolderRetry{milliseconds(100), seconds(5), 2.0, 0.25};
// Without a watch of the folder, a new kubelet must be seen by looking.
constexpr kube::Duration kUnwatchedRecheck = milliseconds(500);

}  // namespace

PluginHost::PluginHost(const std::vector<DevicePlugin*>& plugins, std::string folder, const kube::Clock& clock,
                       const kube::Log& log)
    : folder_(std::move(folder)), clock_(clock), log_(log), retry_(kFolderRetry, clock.RandomSeed()) {
  SilenceGrpc();
  for (DevicePlugin* plugin : plugins) {
    plugins_.push_back(std::make_unique<KeptPlugin>(
        *plugin, folder_, [this] { Wake(false); }, clock, log));
  }
}

PluginHost::~PluginHost() = default;

void PluginHost::NotifyChanged() {
  for (const auto& plugin : plugins_) plugin->NotifyChanged();
}

int PluginHost::registered() const {
  return static_cast<int>(std::ranges::count_if(plugins_, [](const auto& plugin) { return plugin->is_registered(); }));
}

int PluginHost::registrations() const {
  int all = 0;
  for (const auto& plugin : plugins_) all += plugin->registrations();
  return all;
}

void PluginHost::Run(const std::stop_token& stop) {
  std::set<std::string> names = {kKubeletSocketName};
  for (const auto& plugin : plugins_) names.insert(plugin->socket_name());
  FolderWatch watch(
      folder_, std::move(names), [this] { Wake(true); }, clock_);
  const std::stop_callback on_stop(stop, [this] { Wake(false); });
  bool has_news = true;
  while (!stop.stop_requested()) has_news = Wait(LookOnce(watch, has_news, stop), stop);
  for (const auto& plugin : plugins_) plugin->End();
}

void PluginHost::Wake(bool has_news) {
  std::lock_guard lock(mutex_);
  is_woken_ = true;
  has_news_ = has_news_ || has_news;
  wake_.NotifyAll();
}

bool PluginHost::Wait(kube::TimePoint until, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!is_woken_ && !stop.stop_requested() && clock_.Now() < until) clock_.WaitUntil(lock, wake_, until);
  is_woken_ = false;
  return std::exchange(has_news_, false);
}

kube::TimePoint PluginHost::LookOnce(FolderWatch& watch, bool has_news, const std::stop_token& stop) {
  if (!IsThere(watch)) return clock_.Now() + retry_.Next();
  kube::TimePoint next = kube::TimePoint::max();
  for (const auto& plugin : plugins_) {
    if (!stop.stop_requested()) next = std::min(next, plugin->Look(has_news, stop));
  }
  return is_watched_ ? next : std::min(next, clock_.Now() + kUnwatchedRecheck);
}

bool PluginHost::IsThere(FolderWatch& watch) {
  const kube::Status watched = watch.Watch();
  is_watched_ = watched.ok();
  if (watched) {
    retry_.Reset();
    news_.Reset();
    return true;
  }
  if (news_.IsNews(watched.error(), clock_.Now())) {
    log_.Warn("the kubelet's folder for device plugins cannot be watched, trying again",
              {{"error", watched.error().message()}});
  }
  return watched.error().code() != kube::ErrorCode::kNotFound;
}

}  // namespace grus
