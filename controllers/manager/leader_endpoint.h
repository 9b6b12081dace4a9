// SPDX-License-Identifier: Apache-2.0
// Leads a Service without a selector to the process that leads, by an EndpointSlice: who is called there can write.
//
// Between the end of one leader and the start of the next, calls go to the one that has ended.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/client/client.h"

namespace grus {

// "NAME-ipv4" or "NAME-ipv6", by the address: the family of a slice cannot change.
std::string SliceName(const std::string& service, const std::string& address);

struct LeaderEndpointOptions {
  kube::ObjectKey service = {};
  std::string address = {};  // Of this process.
  int port = 0;
};

class LeaderEndpoint {
 public:
  // All must outlive it. `leads` is thread-safe.
  LeaderEndpoint(kube::Client& client, std::function<bool()> leads, LeaderEndpointOptions options,
                 const kube::Clock& clock, const kube::Log& log)
      : client_(client), leads_(std::move(leads)), options_(std::move(options)), clock_(clock), log_(log) {}

  // Blocks until `stop`. Writes soon after it began to lead, and each ten seconds, in case another one wrote late.
  void Run(const std::stop_token& stop);

 private:
  kube::Status Write(const std::stop_token& stop);

  kube::Client& client_;
  const std::function<bool()> leads_;
  const LeaderEndpointOptions options_;
  const kube::Clock& clock_;
  const kube::Log& log_;
};

}  // namespace grus
