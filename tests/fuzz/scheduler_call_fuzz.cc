// SPDX-License-Identifier: Apache-2.0
// Bodies of a scheduler's calls. Rules: a call that is taken has all that its answer is made of, from the body itself,
// and the answer is JSON, whatever the body has in it.
#include "clientlib/model/json_reader.h"
#include "controllers/extender/scheduler_call.h"
#include "tests/fuzz/check.h"

namespace {

bool IsIn(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void RequireJson(const std::string& answer) { fuzz::Require(kube::ParseJson(answer).ok(), "an answer is JSON"); }

void CheckNodes(std::string_view body) {
  const auto call = grus::ReadNodesCall(body);
  if (!call) return;
  fuzz::Require(call->pod != nullptr && !call->pod->metadata.name.empty(), "a call has a pod with a name");
  fuzz::Require(call->objects.empty() || call->objects.size() == call->nodes.size(), "each node is whole, or none is");
  bool are_in = IsIn(call->pod_text, body);
  for (const std::string_view node : call->nodes) are_in = are_in && IsIn(node, body);
  for (const std::string_view object : call->objects) are_in = are_in && IsIn(object, body);
  fuzz::Require(are_in, "texts are views of the body");
  std::vector<std::string> why_not(call->nodes.size());
  for (std::size_t i = 0; i < why_not.size(); i += 2) why_not[i] = "no \"room\"";
  // Whole nodes go back as they came.
  if (call->objects.empty() || kube::ParseJson(body)) RequireJson(grus::FilterAnswer(*call, why_not));
  RequireJson(grus::PrioritizeAnswer(*call, std::vector<int>(call->nodes.size(), 3)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = fuzz::Text(data, size);
  CheckNodes(body);
  if (const auto call = grus::ReadPreemptCall(body)) RequireJson(grus::PreemptAnswer(call->victims));
  if (const auto call = grus::ReadBindCall(body)) {
    fuzz::Require(!call->pod.name.empty() && !call->pod.ns.empty() && !call->node.empty(), "a bind names all it needs");
  } else {
    RequireJson(grus::ErrorAnswer(call.error().message()));
  }
  return 0;
}
