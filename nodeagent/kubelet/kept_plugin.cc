// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/kept_plugin.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "nodeagent/kubelet/registration.h"

namespace grus {
namespace {

using kube::TimePoint;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What the folder's watch cannot tell is found out so late.
constexpr kube::Duration kRecheck = seconds(5);
// A new kubelet's socket is there some time before it answers.
constexpr kube::BackoffPolicy kRetry{milliseconds(50), seconds(5), 2.0, 0.25};
constexpr kube::Duration kLeastBetweenTries = milliseconds(50);
// For the kubelet, to notice that the old connection has ended.
constexpr kube::Duration kFarewell = milliseconds(200);
// The kubelet watches the devices at once, unless it has failed to.
constexpr kube::Duration kLongestToWatch = seconds(10);

}  // namespace

KeptPlugin::KeptPlugin(DevicePlugin& plugin, const std::string& folder, std::function<void()> wake,
                       const kube::Clock& clock, const kube::Log& log)
    : plugin_(plugin),
      resource_(plugin.resource()),
      folder_(folder),
      socket_name_(SocketNameOf(resource_)),
      wake_(std::move(wake)),
      clock_(clock),
      log_(log),
      changes_(clock),
      retry_(kRetry, clock.RandomSeed()) {}

TimePoint KeptPlugin::Look(bool has_news, const std::stop_token& stop) {
  const std::optional<FileIdentity> kubelet = IdentityOf(folder_ + "/" + kKubeletSocketName);
  const TimePoint now = clock_.Now();
  if (!std::exchange(has_looked_, true) && IdentityOf(folder_ + "/" + socket_name_)) {
    left_ = kubelet;
    left_at_ = now;
  }
  if (has_news) {
    retry_.Reset();
    next_try_ = std::min(next_try_, std::max(now, tried_at_ + kLeastBetweenTries));
  }
  if (server_) {
    if (const std::string why = WhyLost(kubelet, now); !why.empty()) {
      if (is_registered_)
        log_.Info("the kubelet is to be told of a device plugin again", {{"resource", resource_}, {"reason", why}});
      left_ = registered_with_;
      left_at_ = next_try_ = now;
      Drop();
    }
  }
  if (is_registered_) return now + kRecheck;
  if (const TimePoint next = NextTry(kubelet); now < next) return next;
  tried_at_ = now;
  const kube::Status registered = Register(kubelet, stop);
  if (!registered) {
    Failed(registered.error());
    next_try_ = clock_.Now() + retry_.Next();
    return next_try_;
  }
  retry_.Reset();
  news_.Reset();
  log_.Info("the kubelet knows a device plugin", {{"resource", resource_}, {"socket", socket_name_}});
  return clock_.Now() + kRecheck;
}

TimePoint KeptPlugin::NextTry(const std::optional<FileIdentity>& kubelet) const {
  const bool is_same = kubelet && kubelet == left_;
  return is_same ? std::max(next_try_, left_at_ + kFarewell) : next_try_;
}

std::string KeptPlugin::WhyLost(const std::optional<FileIdentity>& kubelet, TimePoint now) const {
  if (!server_->IsInPlace()) return "the plugin's socket is gone";
  if (!is_registered_) return server_->open_watches() > 0 ? "the kubelet watches what it has not taken" : "";
  if (registered_with_ != kubelet) return "the kubelet's socket is another one";
  if (server_->open_watches() > 0) return "";
  if (server_->total_watches() > 0) return "the kubelet has stopped to watch the devices";
  return now - registered_at_ > kLongestToWatch ? "the kubelet does not watch the devices" : "";
}

kube::Status KeptPlugin::Register(const std::optional<FileIdentity>& kubelet, const std::stop_token& stop) {
  if (!server_) {
    auto served = PluginServer::Start(plugin_, folder_ + "/" + socket_name_, changes_, wake_);
    if (!served) return std::move(served).error();
    server_ = *std::move(served);
  }
  if (!kubelet) {
    return kube::Error(kube::ErrorCode::kNotFound, "the kubelet's socket " + folder_ + "/" + kKubeletSocketName +
                                                       " is not there: the plugin waits for the kubelet");
  }
  if (kube::Status told = RegisterPlugin(folder_, socket_name_, resource_, stop); !told) return told;
  registered_with_ = kubelet;
  registered_at_ = clock_.Now();
  is_registered_ = true;
  ++registrations_;
  return {};
}

void KeptPlugin::Failed(const kube::Error& error) {
  if (error.code() == kube::ErrorCode::kCancelled || !news_.IsNews(error, clock_.Now())) return;
  if (error.code() == kube::ErrorCode::kAlreadyExists) {
    log_.Error("another one has a device plugin's socket, trying again",
               {{"resource", resource_}, {"error", error.message()}});
  } else {
    log_.Warn("a device plugin is not registered, trying again", {{"resource", resource_}, {"error", error.message()}});
  }
}

void KeptPlugin::Drop() {
  server_->Withdraw();
  // A call of a kubelet that died may run on in the plugin. The next kubelet does not wait for it.
  std::erase_if(ending_, [](const auto& ending) { return ending->is_over(); });
  ending_.push_back(std::make_unique<EndingServer>(std::move(server_), clock_));
  registered_with_.reset();
  is_registered_ = false;
}

void KeptPlugin::End() {
  server_.reset();
  ending_.clear();
  registered_with_.reset();
  is_registered_ = false;
}

}  // namespace grus
