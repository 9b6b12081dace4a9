// SPDX-License-Identifier: Apache-2.0
#include "bench/manager_run.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "clientlib/http/curl_transport.h"

namespace bench {
namespace {

constexpr kube::Duration kLook = std::chrono::milliseconds(100);

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  int port = 0;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  close(fd);
  return port;
}

std::string Loopback(int port) { return "127.0.0.1:" + std::to_string(port); }

bool AnswersReady(int port, const kube::Clock& clock) {
  kube::TransportOptions options;
  options.server = "http://" + Loopback(port);
  auto transport = kube::CurlTransport::Create(options, clock);
  kube::HttpRequest request;
  request.target = "/readyz";
  auto response = (*transport)->Send(request, {});
  return response.ok() && response->status == 200;
}

}  // namespace

ManagerRun::ManagerRun(const std::string& program, std::vector<std::string> arguments, const std::string& log_path,
                       const kube::Clock& clock)
    : clock_(clock), metrics_port_(FreePort()), health_port_(FreePort()) {
  arguments.insert(arguments.begin(), program);
  arguments.insert(arguments.end(),
                   {"--metrics-address", Loopback(metrics_port_), "--health-address", Loopback(health_port_)});
  process_ = std::make_unique<kit::ChildProcess>(arguments, kit::ChildProcess::Variables{}, log_path);
}

bool ManagerRun::WaitUntilReady(kube::TimePoint until) {
  while (process_->IsRunning() && clock_.Now() < until) {
    if (AnswersReady(health_port_, clock_)) return true;
    LetPass(kLook, clock_);  // Another process: nothing tells of it.
  }
  std::fprintf(stderr, "grus-manager did not become ready\n");
  return false;
}

bool ManagerRun::WaitUntilQuiet(kube::Duration quiet, kube::TimePoint until) {
  double cpu = -1;
  kube::TimePoint since = clock_.Now();
  while (clock_.Now() < until) {
    if (const double now = process_->CpuSeconds(); now > cpu) {
      cpu = now;
      since = clock_.Now();
    }
    if (clock_.Now() - since >= quiet) return true;
    LetPass(kLook, clock_);
  }
  return false;
}

void LetPass(kube::Duration time, const kube::Clock& clock) {
  std::mutex mutex;
  kube::CondVar never;
  std::unique_lock lock(mutex);
  const kube::TimePoint until = clock.Now() + time;
  while (clock.Now() < until) clock.WaitUntil(lock, never, until);
}

}  // namespace bench
