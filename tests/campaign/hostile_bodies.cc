// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/hostile_bodies.h"

#include <array>
#include <iterator>

#include "clientlib/model/json.h"
#include "tests/kit/must.h"

namespace grus::testing {
namespace {

using kube::Json;

constexpr const char* kWrongNodesCalls[] = {"",
                                            "null",
                                            "[]",
                                            "7",
                                            "<html>",
                                            R"({"Pod":null,"NodeNames":["node-0"]})",
                                            R"({"Pod":7,"NodeNames":["node-0"]})",
                                            R"({"Pod":[],"NodeNames":["node-0"]})",
                                            R"({"Pod":{"metadata":7},"NodeNames":["node-0"]})",
                                            R"({"Pod":{"metadata":{"name":""}},"NodeNames":["node-0"]})",
                                            R"({"Pod":{"metadata":{"name":"p"}},"NodeNames":{}})",
                                            R"({"Pod":{"metadata":{"name":"p"}},"NodeNames":[7]})",
                                            R"({"Pod":{"metadata":{"name":"p"}},"NodeNames":[["node-0"]]})",
                                            R"({"Pod":{"metadata":{"name":"p"}},"Nodes":[]})",
                                            R"({"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[{}]}})",
                                            R"({"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":{}}})",
                                            R"({"Pod":{"metadata":{"name":"p"},"spec":{"containers":7}}})",
                                            R"({"Pod":{"metadata":{"name":"p"},"spec":{"containers":[
    {"resources":{"limits":{"ai.centauruscloud.io/gpu-milli":"many"}}}]}},"NodeNames":["node-0"]})"};

constexpr const char* kWrongBinds[] = {"",
                                       "null",
                                       "[]",
                                       "{}",
                                       R"({"PodName":7,"PodNamespace":"default","Node":"node-0"})",
                                       R"({"PodName":null,"PodNamespace":"default","Node":"node-0"})",
                                       R"({"PodName":"p","PodNamespace":["default"],"Node":"node-0"})",
                                       R"({"PodName":"p","PodNamespace":"default","Node":{"name":"node-0"}})",
                                       R"({"PodName":"p","PodNamespace":"default","Node":""})",
                                       R"({"PodName":"p","PodNamespace":"default"})",
                                       R"({"PodName":"p","PodNamespace":"","Node":"node-0"})",
                                       R"({"PodName":"p\u002fx","PodNamespace":"default","Node":"node-0"})",
                                       R"({"PodName":"../nodes/node-0","PodNamespace":"default","Node":"node-0"})",
                                       R"({"PodName":"nobody","PodNamespace":"default","Node":"node-0"})"};

std::string Deep(const char* open) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += open;
  return text;
}

template <std::size_t N>
std::string OneOf(const char* const (&bodies)[N], std::mt19937_64& random) {
  return bodies[random() % N];
}

// A right body of which the end is missing, or that goes on behind its end, or is about another pod.
std::string Spoilt(const std::string& body, std::mt19937_64& random) {
  switch (random() % 3) {
    case 0: return body.substr(0, random() % body.size());
    case 1: return body + "}";
    default: break;
  }
  Json other = kit::FromText(body);
  if (other.Find("PodUID") != nullptr) other["PodUID"] = "of-another-pod";
  else other["Pod"]["spec"]["containers"] = Json::MakeObject();
  return kube::ToText(other);
}

}  // namespace

HostileCall DrawHostileCall(std::mt19937_64& random, const std::string& filter, const std::string& bind) {
  HostileCall call;
  call.verb = std::array{"filter", "prioritize", "bind"}[random() % 3];
  const bool is_bind = call.verb == "bind";
  const std::string& right = is_bind ? bind : filter;
  switch (random() % 4) {
    case 0:
      if (!right.empty()) {
        call.body = Spoilt(right, random);
        return call;
      }
      [[fallthrough]];
    case 1:
    case 2: call.body = is_bind ? OneOf(kWrongBinds, random) : OneOf(kWrongNodesCalls, random); return call;
    default: break;
  }
  // Too deep, or of a megabyte, which says nothing.
  const std::string member = is_bind ? R"({"PodName":)" : R"({"Pod":)";
  if (random() % 2 == 0) call.body = member + Deep(random() % 2 == 0 ? "[" : R"({"a":)");
  else call.body = member + "\"" + std::string(1 << 20, 'a') + "\"";
  return call;
}

}  // namespace grus::testing
