// SPDX-License-Identifier: Apache-2.0
// Events (core/v1) as the controllers of a cluster write them, through client-go's recorder (tools/record).
//
// A repetition raises the count of the existing event. Events that differ only by their message become one from the
// tenth within ten minutes on, with the last message: "(combined from similar events): ...". After 25 of a type about
// one object, one more every five minutes is written. Readers of events must expect all three. Not thread-safe, like
// Simulation.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class ControllerEvents {
 public:
  ControllerEvents(const ClusterContext& context, std::string component)
      : context_(context), component_(std::move(component)) {}

  // Written a little later. `type`: Normal or Warning.
  void Record(const Json& about, std::string_view type, std::string_view reason, std::string message);

 private:
  struct Similar {  // Events that differ by their message.
    std::set<std::string> messages;
    TimePoint last{};
  };
  struct Budget {  // Of one object and type.
    double left = 0;
    TimePoint since{};
  };
  struct Written {
    std::string name, first;
    int count = 0;
    TimePoint last{};
  };

  void Write(Json event);
  void ForgetOld();  // client-go keeps 4096 of each; here time decides.
  bool IsTooMuch(const std::string& object_and_type);
  bool Count(const std::string& ns, const Written& written, const Json& event);  // False: the event is gone.

  const ClusterContext& context_;
  const std::string component_;
  std::map<std::string, Similar> similar_;
  std::map<std::string, Budget> budgets_;
  std::map<std::string, Written> written_;
  TimePoint forgot_at_{};
  std::uint64_t last_ = 0;  // Makes names of events at the same time differ.
};

}  // namespace kube::testing
