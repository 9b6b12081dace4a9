// SPDX-License-Identifier: Apache-2.0
// The way from a scheduler to the extenders of the processes under test, as over HTTP and a Service, in virtual time.
//
// A call takes a while each way. Its caller gives up after five seconds, whatever the process still does with it; what
// a process had in hand when it died has no answer. A process that is not ready, or does not lead and shall bind, says
// so, as the manager's server does (extender_server.h). On the simulation's thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/testing/simulation/simulation.h"

namespace grus::testing {

class ExtenderPort {
 public:
  using Answer = kube::Result<std::string>;
  // Answers a body. kInvalidArgument: it makes no sense (HTTP 400).
  using Verbs = std::function<Answer(std::string_view verb, std::string_view body)>;
  struct Server {
    Verbs answer = {};
    std::function<bool()> is_ready = {}, leads = {};
  };

  explicit ExtenderPort(kube::testing::Simulation& simulation) : simulation_(simulation) {}

  // `done` hears the answer once: kUnavailable: nobody answered, or nobody who may.
  void Call(std::string verb, std::string body, std::function<void(Answer)> done);
  // On a thread of the process, until `stop`: its calls are answered on several threads of it.
  void Serve(const Server& server, std::stop_token stop);
  // Somebody who answers in place of the processes, at once.
  void SetStandIn(Verbs stand_in) { stand_in_ = std::move(stand_in); }

 private:
  struct Pending;
  struct Line;
  using PendingPtr = std::shared_ptr<Pending>;

  static void Finish(const PendingPtr& call, Answer answer);
  std::shared_ptr<Line> Choose();
  void Deliver(const PendingPtr& call);
  void AnswerSome(const Server& server, const std::shared_ptr<Line>& line, const std::stop_token& stop);

  kube::testing::Simulation& simulation_;
  std::vector<std::shared_ptr<Line>> lines_;  // To processes that serve.
  Verbs stand_in_;
};

}  // namespace grus::testing
