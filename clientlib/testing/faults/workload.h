// SPDX-License-Identifier: Apache-2.0
// What a fault campaign plays: a cluster, the processes under test, and what users do. Each reconciler adds workloads
// of its own; the campaign does the rest.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/cluster/fake_cluster.h"
#include "clientlib/testing/simulation/simulation.h"

namespace kube::testing {

// All that there is in one run.
struct World {
  using Objects = std::map<ObjectKey, std::shared_ptr<const Json>>;

  explicit World(std::uint64_t seed);

  // A copy of the server's objects that lags behind it until the campaign brings it up, revision by revision: so
  // invariants see each of them.
  const Json* Get(std::string_view resource, const ObjectKey& key) const;  // Null if there is none.
  const Objects& All(std::string_view resource) const;

  Simulation simulation;
  FakeApiServer server;
  FakeCluster cluster;
  std::map<std::string, Objects, std::less<>> objects;
  std::vector<ServerChange> changes;  // Not taken over into `objects` yet.
};

// What a user or an accident does, as soon as `when` holds. The last one is the end: its `when` says that all is done,
// and it does nothing.
struct Step {
  std::string name;
  std::function<bool(const World& world)> when;
  std::function<void(World& world)> act;
  // Besides, all must be at rest; what there is then is noted (Outcome::rests).
  bool waits_for_rest = false;
  // How long `act` goes on by timers of its own; the next step is not asked before.
  Duration lasts{};
};

struct ProcessContext {
  const Clock& clock;
  Transport& transport;
  std::string identity;  // In leases and events.
};

// Says of each change what it breaks; empty: nothing. One for each run, so it may remember.
using Invariant = std::function<std::string(const World& world, const ServerChange& change)>;

// Immutable; shared by all runs.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string_view name() const = 0;
  // Nodes, CRDs and what else is there before anything runs.
  virtual void Prepare(World& world) const = 0;
  virtual std::vector<Step> Steps() const = 0;

  // One process under test, until `stop`. What it returns by itself is started again, as a Deployment would.
  virtual void RunProcess(const ProcessContext& context, std::stop_token stop) const = 0;
  virtual int processes() const { return 1; }
  virtual bool uses_leases() const { return false; }  // Its processes write only while they hold one.

  // Kinds whose objects the processes make: "services", "statefulsets.apps". How often each of them is created and
  // deleted is compared, and a fault may delete or edit one.
  virtual std::vector<std::string> owned_resources() const = 0;
  // Overwrites a field of such an object, as somebody with kubectl might. False: its kind is not looked after once it
  // is made, so nobody touches it.
  virtual bool Damage(std::string_view resource, Json& object) const = 0;
  // What the object is called, so that two right ends agree: generated endings become "*".
  virtual std::string NameOf(std::string_view resource, const Json& object) const;
  // Makes two right ends equal: takes out of `object` what may differ (the usual volatile fields are gone already). A
  // null: it does not count.
  virtual void Mask(std::string_view resource, Json& object) const = 0;
  virtual std::vector<Invariant> Invariants() const { return {}; }
  // How long nothing must have changed until a step that waits for rest takes it for rest, where that is not the usual
  // time. More: something is due that only time brings. Less: what cannot be done is tried again and again, and this is
  // a pause between two tries.
  virtual std::optional<Duration> QuietTime(const World&) const { return std::nullopt; }
  // Looked at once all is at rest; each string is a complaint.
  virtual std::vector<std::string> CheckRest(const World& world) const = 0;
};

}  // namespace kube::testing
