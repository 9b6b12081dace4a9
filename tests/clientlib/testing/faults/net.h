// SPDX-License-Identifier: Apache-2.0
// A server and a faulty network before it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "clientlib/base/wait.h"
#include "clientlib/testing/faults/faulty_network.h"

namespace kube::testing {

inline constexpr Duration kSoon = std::chrono::seconds(1);  // More than an answer takes, less than any fault lasts.
inline constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";
inline constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

inline HttpRequest Get(const std::string& name) { return {.target = std::string(kMaps) + "/" + name}; }
inline HttpRequest Post(const std::string& name) {
  return {.method = "POST", .target = kMaps, .body = R"({"metadata":{"name":")" + name + R"("},"data":{"a":"b"}})"};
}
inline HttpRequest PostLease(const std::string& name, const std::string& holder) {
  return {.method = "POST",
          .target = kLeases,
          .body = R"({"metadata":{"name":")" + name + R"("},"spec":{"holderIdentity":")" + holder + R"("}})"};
}
inline HttpRequest PatchLease(const std::string& name, const std::string& holder) {
  return {.method = "PATCH",
          .target = std::string(kLeases) + "/" + name,
          .headers = {{"content-type", "application/merge-patch+json"}},
          .body = R"({"spec":{"holderIdentity":")" + holder + R"("}})"};
}

// A server and the network before it, with faults as in a schedule: "busy@0 watch-gone@2".
class Net {
 public:
  using Body = std::function<void(Transport& line)>;

  explicit Net(const std::string& faults = "")
      : simulation(1),
        server(simulation),
        network(simulation, server, ParseSchedule("net seed=1 " + faults)->faults,
                {[this](int process) { crashed.push_back(process); },
                 [this](const Fault& fault) { tampered.emplace_back(fault.kind->name); }}) {}

  // A process that does `body`, to its end.
  void Play(const Body& body, const std::string& identity = "", int process = 0) {
    Start(body, identity, process).Join();
  }
  Thread Start(Body body, const std::string& identity = "", int process = 0) {
    return simulation.SpawnProcess(process, [=, this, body = std::move(body)](const std::stop_token&) {
      const auto line = network.Attach(process, identity);
      body(*line);
    });
  }
  void Wait(Duration time) { WaitFor(simulation, time, {}); }
  Duration Since(TimePoint start) const { return simulation.Now() - start; }
  bool Has(const std::string& name) const { return server.Get("configmaps", {"default", name}) != nullptr; }
  void Make(const std::string& name) {
    Json object;
    object["metadata"] = Json::MakeObject({{"name", name}, {"namespace", "default"}});
    ASSERT_TRUE(server.Create("configmaps", std::move(object)));
  }

  Simulation simulation;
  FakeApiServer server;
  FaultyNetwork network;
  std::vector<int> crashed;
  std::vector<std::string> tampered;
};

// "200", "kUnavailable".
inline std::string What(const Result<HttpResponse>& answer) {
  return answer ? std::to_string(answer->status) : std::string(ToString(answer.error().code()));
}
inline std::string What(const Result<StreamResponse>& answer) {
  return answer ? std::to_string(answer->head.status) : std::string(ToString(answer.error().code()));
}
inline std::string Code(ErrorCode code) { return std::string(ToString(code)); }

}  // namespace kube::testing
