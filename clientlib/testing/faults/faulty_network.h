// SPDX-License-Identifier: Apache-2.0
// The network between the processes of a simulation and its API server: it takes a little time, it watches what the
// processes send, and it does what a schedule of faults says.
//
// Besides, it keeps the books that oracles read: how often each point was passed, and every breach of a promise that
// shows on the wire: a request before its Retry-After was over, a write after the writer's lease had run out.
// On the simulation's thread only.
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
#include "clientlib/testing/simulation/simulation.h"

namespace kube::testing {

class FaultyNetwork {
 public:
  struct Hooks {
    std::function<void(int process)> crash;          // The process must end; its requests fail from now on.
    std::function<void(const Fault& fault)> tamper;  // A fault that is done to objects, not to the network.
  };

  FaultyNetwork(Simulation& simulation, FakeApiServer& server, std::vector<Fault> faults, Hooks hooks);
  ~FaultyNetwork();

  // The network as a new process sees it. `identity` is what it calls itself in leases; empty: it holds none.
  std::unique_ptr<Transport> Attach(int process, std::string identity);
  // What the process sends from now on reaches nobody.
  void Detach(int process);

  int count(FaultPoint point) const { return counts_[static_cast<std::size_t>(point)]; }
  int writes() const { return writes_; }  // All that reached the server, but for leases and dry runs.
  const std::vector<std::string>& breaches() const { return breaches_; }
  bool all_faults_happened() const { return faults_.empty(); }
  // The longest time from a process's sudden end to the first lease of another one.
  Duration longest_takeover() const { return longest_takeover_; }

 private:
  class Line;  // One process's view.
  class Stream;
  struct Request;

  // Counts one passing of `point`; the faults that are due now, taken off the list.
  std::vector<Fault> Pass(FaultPoint point);
  void Breach(std::string what);

  Simulation& simulation_;
  FakeApiServer& server_;
  std::vector<Fault> faults_;  // Those to come.
  Hooks hooks_;
  std::array<int, 5> counts_{};
  int writes_ = 0;
  std::vector<std::string> breaches_;
  std::map<int, Line*> lines_;  // Of live processes.
  TimePoint down_until_{}, hidden_until_{}, no_leases_until_{};
  TimePoint died_at_ = TimePoint::max();  // The last leader that died suddenly and was not replaced yet.
  Duration longest_takeover_{};
};

}  // namespace kube::testing
