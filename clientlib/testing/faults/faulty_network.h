// SPDX-License-Identifier: Apache-2.0
// The network between the processes of a simulation and its API server: it adds small delays, checks what the processes
// send, and injects the faults of a schedule.
//
// Also counts how often each point was passed, and records each breach that shows on the wire: a request before its
// Retry-After ended, a write after the writer's lease expired. On the simulation's thread only.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/faults/fault.h"
#include "clientlib/testing/faults/workload.h"
#include "clientlib/testing/simulation/simulation.h"

namespace kube::testing {

class FaultyNetwork {
 public:
  struct Hooks {
    std::function<void(int process)> crash;          // The process must end; its requests fail from now on.
    std::function<void(const Fault& fault)> tamper;  // A fault in objects, not in the network.
  };

  FaultyNetwork(Simulation& simulation, FakeApiServer& server, std::vector<Fault> faults, Hooks hooks);
  ~FaultyNetwork();

  // The network as a new process sees it. `identity` is the process's name in leases; empty: it holds none.
  std::unique_ptr<Transport> Attach(int process, std::string identity);
  // The way of the process that was attached last under that number to another server. REQUIRES: it is still attached.
  std::unique_ptr<Transport> AttachTo(AskedServer& server, int process);
  // Drops what the process sends from now on.
  void Detach(int process);

  int count(FaultPoint point) const { return counts_[static_cast<std::size_t>(point)]; }
  // All that reached the server, except leases and dry runs, and what a process asked for after its death.
  int writes() const { return writes_; }
  const std::vector<std::string>& breaches() const { return breaches_; }
  bool all_faults_happened() const { return faults_.empty(); }
  // The longest time from a process's sudden end to the first lease of another one.
  Duration longest_takeover() const { return longest_takeover_; }

 private:
  class Line;  // One process's connection.
  class AskedLine;
  class Stream;
  struct Request;

  // Counts one passing of `point`; removes the faults that are due now from faults_ and returns them.
  std::vector<Fault> Pass(FaultPoint point);
  void Breach(std::string what);

  Simulation& simulation_;
  FakeApiServer& server_;
  std::vector<Fault> faults_;  // The remaining ones.
  Hooks hooks_;
  std::array<int, kFaultPoints> counts_{};
  int writes_ = 0;
  std::vector<std::string> breaches_;
  std::map<int, Line*> lines_;  // Of live processes.
  TimePoint down_until_{}, hidden_until_{}, no_leases_until_{};
  TimePoint died_at_ = TimePoint::max();  // When the last leader died suddenly, if it is not replaced yet.
  Duration longest_takeover_{};
};

}  // namespace kube::testing
