// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/server_wait.h"

#include "clientlib/base/backoff.h"
#include "clientlib/base/wait.h"
#include "clientlib/client/resource_path.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;
using kube::Status;

constexpr kube::BackoffPolicy kBackoff{std::chrono::seconds(1), std::chrono::seconds(30), 2.0, 0.2};

Status CheckKinds(kube::Client& client, const std::vector<const kube::Kind*>& kinds, const std::string& ns,
                  std::stop_token stop) {
  for (const kube::Kind* kind : kinds) {
    const std::string path = kube::CollectionPath(*kind, ns);
    Result<std::string> answer = client.GetRaw(path + "?limit=1", stop);
    if (answer) continue;
    const std::string name = std::string(kind->plural) + "." + std::string(kind->group);
    if (answer.error().code() == ErrorCode::kNotFound) {
      return Error(ErrorCode::kNotFound,
                   "the CustomResourceDefinition " + name + " is not installed: kubectl apply -f crds/generated");
    }
    return std::move(answer).error().with("list " + name);
  }
  return {};
}

}  // namespace

Status WaitForServer(kube::Connection& connection, const std::vector<const kube::Kind*>& kinds, const std::string& ns,
                     const kube::Clock& clock, const kube::Log& log, std::stop_token stop) {
  kube::Backoff backoff(kBackoff);
  for (;;) {
    Status ready = CheckKinds(*connection.client, kinds, ns, stop);
    if (ready || stop.stop_requested()) return {};
    const Error& error = ready.error();
    if (error.is_terminal() || error.code() == ErrorCode::kUnauthorized) {
      return std::move(ready).error().with(connection.config.source);
    }
    const kube::Duration wait = backoff.Next();
    log.Warn("waiting for the API server",
             {{"error", error.message()},
              {"retry_in_seconds", std::chrono::duration_cast<std::chrono::seconds>(wait).count()}});
    if (!kube::WaitFor(clock, wait, stop)) return {};
  }
}

}  // namespace grus
