// SPDX-License-Identifier: Apache-2.0
// Pods for contract tests. No scheduler takes those that name another one, and no kubelet those of a node
// that is not there.
#pragma once

#include <stdexcept>
#include <string>

#include "tests/contract/server.h"

namespace kube::contract {

class PodContract : public Contract {
 protected:
  void SetUp() override {
    Contract::SetUp();
    AwaitServiceAccount();
  }
  // `more` is merged into the spec. Throws unless it is made.
  Answer MakePod(const std::string& name, const std::string& more = "{}") {
    const Answer made = TryPod(name, more);
    if (made.status != 201) throw std::runtime_error(made.http.body);
    return made;
  }
  Answer TryPod(const std::string& name, const std::string& more, const std::string& query = {}) {
    Json pod = J(R"({"spec":{"schedulerName":"nobody","terminationGracePeriodSeconds":5,
                     "containers":[{"name":"c","image":"i"}]}})");
    MergePatch(pod["spec"], J(more));
    pod["metadata"]["name"] = name;
    return Post(Pods() + query, ToText(pod));
  }
  Answer Bind(const std::string& name, const std::string& node = "not-there") {
    return Post(Pods() + "/" + name + "/binding",
                R"({"metadata":{"name":")" + name + R"("},"target":{"kind":"Node","name":")" + node + R"("}})");
  }
};

}  // namespace kube::contract
