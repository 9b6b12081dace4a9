// SPDX-License-Identifier: Apache-2.0
// A transport that counts writes and requests for logs, and lets a test refuse logs.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "clientlib/http/transport.h"

namespace kit {

class LogWire final : public kube::Transport {
 public:
  // `refusal`: the answer to requests for logs while they are refused.
  LogWire(kube::Transport& inner, kube::Error refusal) : inner_(inner), refusal_(std::move(refusal)) {}

  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (request.method != "GET") ++writes;
    return inner_.Send(request, std::move(stop));
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    if (request.target.find("/log?") == std::string::npos) return inner_.Open(request, std::move(stop));
    ++logs;
    if (are_logs_refused) return refusal_;
    return inner_.Open(request, std::move(stop));
  }

  std::atomic<bool> are_logs_refused{false};
  std::atomic<int> writes{0}, logs{0};

 private:
  kube::Transport& inner_;
  const kube::Error refusal_;
};

}  // namespace kit
