// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/claim_host.h"

#include <chrono>
#include <utility>

#include "clientlib/base/wait.h"
#include "nodeagent/kubelet/grpc_status.h"

namespace grus {
namespace {

constexpr kube::Duration kRecheck = std::chrono::seconds(5);

}  // namespace

ClaimHost::ClaimHost(ClaimDriver& driver, const std::string& folder, const kube::Clock& clock, const kube::Log& log)
    : driver_(driver), socket_(folder + "/" + driver.name() + "-grus.sock"), clock_(clock), log_(log) {
  SilenceGrpc();
}

void ClaimHost::Run(const std::stop_token& stop) {
  do LookOnce();
  while (kube::WaitFor(clock_, kRecheck, stop));
  server_.reset();
  is_registered_ = false;
}

void ClaimHost::LookOnce() {
  if (server_ && server_->IsInPlace()) return;
  server_.reset();
  is_registered_ = false;
  auto served = ClaimServer::Start(driver_, socket_, [this](const kube::Status& status) { Note(status); });
  if (served) {
    server_ = *std::move(served);
    news_.Reset();
  } else if (news_.IsNews(served.error(), clock_.Now())) {
    log_.Warn("claimed devices cannot be served to the kubelet, trying again", {{"error", served.error().message()}});
  }
}

void ClaimHost::Note(const kube::Status& status) {
  is_registered_ = status.ok();
  const std::scoped_lock lock(mutex_);
  if (status) {
    refused_.Reset();
    log_.Info("the kubelet knows a driver for claimed devices", {{"driver", driver_.name()}});
  } else if (refused_.IsNews(status.error(), clock_.Now())) {
    log_.Warn("the kubelet refuses a driver for claimed devices; it needs Kubernetes 1.34 or newer",
              {{"driver", driver_.name()}, {"error", status.error().message()}});
  }
}

}  // namespace grus
