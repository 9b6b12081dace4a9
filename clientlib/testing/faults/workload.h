// SPDX-License-Identifier: Apache-2.0
// What a fault campaign runs: a cluster, the processes under test, and what users do. Each reconciler adds its own
// workloads; the campaign does the rest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/cluster/fake_cluster.h"
#include "clientlib/testing/faults/fault.h"
#include "clientlib/testing/simulation/simulation.h"

namespace kube::testing {

// A server that the processes ask besides the API server, such as a Prometheus. On the simulation's thread only.
class AskedServer {
 public:
  virtual ~AskedServer() = default;
  // On the fiber that asks, which may wait. `faults`: those that are due with this question; they are the server's to
  // play.
  virtual Result<StreamResponse> Answer(const HttpRequest& request, const std::vector<Fault>& faults,
                                        std::stop_token stop) = 0;
};

// Somebody outside who calls what the processes under test serve, such as a scheduler with an extender. The workload
// that has one knows which it is.
class Caller {
 public:
  virtual ~Caller() = default;
};

// The world of one run.
struct World {
  using Objects = std::map<ObjectKey, std::shared_ptr<const Json>>;

  explicit World(std::uint64_t seed);

  // Reads a copy of the server's objects, which the campaign updates revision by revision, so that invariants see each
  // one.
  const Json* Get(std::string_view resource, const ObjectKey& key) const;  // Null if there is none.
  const Objects& All(std::string_view resource) const;

  Simulation simulation;
  FakeApiServer server;
  FakeCluster cluster;
  std::map<std::string, Objects, std::less<>> objects;
  std::vector<ServerChange> changes;   // Not yet applied to `objects`.
  std::unique_ptr<AskedServer> asked;  // Null: there is none. Workload::Prepare() sets it.
  std::unique_ptr<Caller> caller;      // Likewise.
};

// What a user or an accident does, as soon as `when` holds. The last step is the end: its `when` says that all is done,
// and it does nothing.
struct Step {
  std::string name;
  std::function<bool(const World& world)> when;
  std::function<void(World& world)> act;
  // Also waits until all is at rest, and records the state then (Outcome::rests).
  bool waits_for_rest = false;
  // How long `act` goes on by timers of its own; the next step waits for that.
  Duration lasts{};
};

struct ProcessContext {
  const Clock& clock;
  Transport& transport;
  std::string identity;        // In leases and events.
  Transport* asked = nullptr;  // To World::asked.
  Caller* caller = nullptr;    // World::caller.
};

// Returns what a change breaks; empty: nothing. Made anew for each run, so it may keep state.
using Invariant = std::function<std::string(const World& world, const ServerChange& change)>;

// Immutable; shared by all runs.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string_view name() const = 0;
  // Creates nodes, CRDs and whatever else exists before anything runs.
  virtual void Prepare(World& world) const = 0;
  virtual std::vector<Step> Steps() const = 0;

  // One process under test, until `stop`. If it returns by itself it is started again, as a Deployment does.
  virtual void RunProcess(const ProcessContext& context, std::stop_token stop) const = 0;
  virtual int processes() const { return 1; }
  virtual bool uses_leases() const { return false; }  // Its processes write only while they hold one.
  // Whether random schedules have such faults.
  virtual bool Suffers(const FaultKind& kind) const { return kind.point != FaultPoint::kQuery; }

  // Kinds whose objects the processes create: "services", "statefulsets.apps". The campaign compares how often each
  // object is created and deleted, and a fault may delete or edit one.
  virtual std::vector<std::string> owned_resources() const = 0;
  virtual bool AreCounted(std::string_view) const { return true; }  // Whether it compares that for this kind.
  // Overwrites a field of such an object, as somebody with kubectl might. False: the processes do not repair this kind,
  // so faults leave it alone.
  virtual bool Damage(std::string_view resource, Json& object) const = 0;
  // The object's name, made equal for equal ends: generated endings become "*".
  virtual std::string NameOf(std::string_view resource, const Json& object) const;
  // Makes two right ends equal: removes from `object` what may differ (the usual volatile fields are removed already).
  // Set it to null to ignore the object.
  virtual void Mask(std::string_view resource, Json& object) const = 0;
  virtual std::vector<Invariant> Invariants() const { return {}; }
  // How long nothing must change before a step that waits for rest continues, if not the usual time. Longer: a timer is
  // still due. Shorter: the processes retry something impossible forever, and this is a pause between two tries.
  virtual std::optional<Duration> QuietTime(const World&) const { return std::nullopt; }
  // Called once all is at rest; each string is a complaint.
  virtual std::vector<std::string> CheckRest(const World& world) const = 0;
};

}  // namespace kube::testing
