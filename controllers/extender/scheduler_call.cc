// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/scheduler_call.h"

#include <algorithm>
#include <utility>

#include "clientlib/base/lower_case.h"
#include "clientlib/model/json_scan.h"
#include "clientlib/model/json_writer.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::JsonScan;
using kube::Result;
using kube::Status;

// As Go reads names of members: "NodeNames", "nodeNames" and "nodenames" are one.
bool IsMember(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, [](char a, char b) { return kube::LowerCase(a) == b; });
}

Error Bad(std::string_view member, std::string_view expected) {
  return Error(ErrorCode::kInvalidArgument, std::string(member) + ": expected " + std::string(expected));
}

bool IsNull(std::string_view value) { return value == "null"; }

// The text of a JSON string of plain characters, as names, UIDs and namespaces are.
Result<std::string_view> PlainText(std::string_view member, std::string_view value) {
  const bool is_string = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  if (!is_string) return Bad(member, "a string");
  value = value.substr(1, value.size() - 2);
  const auto is_plain = [](char c) { return c > ' ' && c <= '~' && c != '\\' && c != '"'; };
  if (!std::ranges::all_of(value, is_plain)) return Bad(member, "a name of plain characters");
  return value;
}

// Calls `read(name, value)` for each member that is not null.
template <typename F>
Status ForEachMember(std::string_view what, std::string_view text, const F& read) {
  JsonScan scan(text, '{');
  while (scan.Next()) {
    if (IsNull(scan.value())) continue;
    if (Status done = read(scan.name(), scan.value()); !done) return done;
  }
  if (!scan.problem().empty()) return Bad(what, "a JSON object: " + std::string(scan.problem()));
  return {};
}

template <typename F>
Status ForEachItem(std::string_view what, std::string_view text, const F& read) {
  JsonScan scan(text, '[');
  while (scan.Next()) {
    if (Status done = read(scan.value()); !done) return done;
  }
  if (!scan.problem().empty()) return Bad(what, "a JSON array: " + std::string(scan.problem()));
  return {};
}

Status TakePod(std::string_view text, std::shared_ptr<const kube::Pod>& into) {
  Result<std::shared_ptr<kube::Pod>> pod = kube::Decode<kube::Pod>(text);
  if (!pod) return Error(ErrorCode::kInvalidArgument, pod.error().message()).with("Pod");
  if ((*pod)->metadata.name.empty()) return Bad("Pod.metadata.name", "the name of a pod");
  into = *std::move(pod);
  return {};
}

// Of an object, at `outer`.`inner`; empty: it has none.
Result<std::string_view> NameAt(std::string_view what, std::string_view text, std::string_view outer,
                                std::string_view inner) {
  for (JsonScan scan(text, '{'); scan.Next();) {
    if (!IsMember(scan.name(), outer)) continue;
    for (JsonScan in(scan.value(), '{'); in.Next();) {
      if (IsMember(in.name(), inner)) return PlainText(what, in.value());
    }
  }
  return std::string_view();
}

Status ReadNodes(std::string_view text, NodesCall& call) {
  return ForEachMember("Nodes", text, [&](std::string_view name, std::string_view value) -> Status {
    if (!IsMember(name, "items")) return {};
    return ForEachItem("Nodes.items", value, [&](std::string_view node) -> Status {
      const Result<std::string_view> found = NameAt("Nodes.items.metadata.name", node, "metadata", "name");
      if (!found) return found.error();
      if (found->empty()) return Bad("Nodes.items.metadata.name", "the name of each node");
      call.nodes.push_back(*found);
      call.objects.push_back(node);
      return {};
    });
  });
}

Result<std::vector<std::string>> ReadUids(std::string_view what, std::string_view pods) {
  std::vector<std::string> uids;
  Status read = ForEachItem(what, pods, [&](std::string_view pod) -> Status {
    // A MetaPod has its UID at the top, a whole pod in its metadata.
    Result<std::string_view> uid = std::string_view();
    for (JsonScan scan(pod, '{'); scan.Next() && uid && uid->empty();) {
      if (IsMember(scan.name(), "uid")) uid = PlainText(what, scan.value());
    }
    if (uid && uid->empty()) uid = NameAt(what, pod, "metadata", "uid");
    if (!uid) return std::move(uid).error();
    if (uid->empty()) return Bad(what, "the UID of each pod");
    uids.emplace_back(*uid);
    return {};
  });
  if (!read) return std::move(read).error();
  return uids;
}

Status ReadVictims(std::string_view what, std::string_view text, PreemptCall& call) {
  return ForEachMember(what, text, [&](std::string_view node, std::string_view value) -> Status {
    PreemptCall::Victims victims;
    Status read = ForEachMember(what, value, [&](std::string_view name, std::string_view of) -> Status {
      if (IsMember(name, "pods")) {
        auto uids = ReadUids(std::string(what) + ".Pods", of);
        if (!uids) return std::move(uids).error();
        victims.uids = *std::move(uids);
      } else if (IsMember(name, "numpdbviolations")) {
        const Result<kube::Json> number = kube::ParseJson(of);
        const std::int64_t* const amount = number ? number->AsInt() : nullptr;
        if (amount == nullptr) return Bad(std::string(what) + ".NumPDBViolations", "an integer");
        victims.violations = *amount;
      }
      return {};
    });
    if (read) call.victims[std::string(node)] = std::move(victims);
    return read;
  });
}

}  // namespace

Result<NodesCall> ReadNodesCall(std::string_view body) {
  NodesCall call;
  Status read = ForEachMember("the body", body, [&](std::string_view name, std::string_view value) -> Status {
    if (IsMember(name, "pod")) {
      call.pod_text = value;
      return TakePod(value, call.pod);
    }
    if (IsMember(name, "nodes")) return ReadNodes(value, call);
    if (!IsMember(name, "nodenames")) return {};
    return ForEachItem("NodeNames", value, [&](std::string_view item) -> Status {
      const Result<std::string_view> node = PlainText("NodeNames", item);
      if (!node) return node.error();
      call.nodes.push_back(*node);
      return {};
    });
  });
  if (!read) return std::move(read).error();
  if (!call.pod) return Bad("Pod", "the pod to schedule");
  if (!call.objects.empty() && call.objects.size() != call.nodes.size()) {
    return Bad("Nodes", "either Nodes or NodeNames, not both");
  }
  return call;
}

Result<PreemptCall> ReadPreemptCall(std::string_view body) {
  PreemptCall call;
  Status read = ForEachMember("the body", body, [&](std::string_view name, std::string_view value) -> Status {
    if (IsMember(name, "pod")) return TakePod(value, call.pod);
    if (IsMember(name, "nodenametovictims")) return ReadVictims("NodeNameToVictims", value, call);
    if (IsMember(name, "nodenametometavictims")) return ReadVictims("NodeNameToMetaVictims", value, call);
    return {};
  });
  if (!read) return std::move(read).error();
  if (!call.pod) return Bad("Pod", "the pod that preempts");
  return call;
}

Result<BindCall> ReadBindCall(std::string_view body) {
  BindCall call;
  Status read = ForEachMember("the body", body, [&](std::string_view name, std::string_view value) -> Status {
    std::string* const into = IsMember(name, "podname")        ? &call.pod.name
                              : IsMember(name, "podnamespace") ? &call.pod.ns
                              : IsMember(name, "poduid")       ? &call.uid
                              : IsMember(name, "node")         ? &call.node
                                                               : nullptr;
    if (into == nullptr) return {};
    const Result<std::string_view> text = PlainText(name, value);
    if (!text) return text.error();
    *into = *text;
    return {};
  });
  if (!read) return std::move(read).error();
  if (call.pod.name.empty()) return Bad("PodName", "the name of a pod");
  if (call.pod.ns.empty()) return Bad("PodNamespace", "its namespace");
  if (call.node.empty()) return Bad("Node", "the name of a node");
  return call;
}

std::string FilterAnswer(const NodesCall& call, const std::vector<std::string>& why_not) {
  kube::JsonWriter failed;
  failed.StartObject();
  const bool are_names = call.objects.empty();
  // Whole nodes make megabytes, which are copied once.
  const std::vector<std::string_view>& texts = are_names ? call.nodes : call.objects;
  std::size_t size = 100;
  for (const std::string_view text : texts) size += text.size() + 3;
  std::string answer;
  answer.reserve(size);
  answer += are_names ? R"({"NodeNames":[)" : R"({"Nodes":{"items":[)";
  std::string_view separator;
  for (std::size_t i = 0; i < call.nodes.size(); ++i) {
    if (!why_not[i].empty()) {
      failed.Key(call.nodes[i]);
      failed.String(why_not[i]);
      continue;
    }
    answer += std::exchange(separator, ",");
    if (are_names) answer.append(1, '"').append(texts[i]).append(1, '"');
    else answer += texts[i];
  }
  failed.EndObject();
  return answer.append(are_names ? R"(],"FailedNodes":)" : R"(]},"FailedNodes":)").append(failed.Take()).append("}");
}

std::string PrioritizeAnswer(const NodesCall& call, const std::vector<int>& scores) {
  std::string list = "[";
  for (std::size_t i = 0; i < call.nodes.size(); ++i) {
    list.append(i > 0 ? R"(,{"Host":")" : R"({"Host":")").append(call.nodes[i]);
    list.append(R"(","Score":)").append(std::to_string(scores[i])).append("}");
  }
  return list + "]";
}

std::string PreemptAnswer(const std::map<std::string, PreemptCall::Victims>& victims) {
  kube::JsonWriter answer;
  answer.StartObject();
  answer.Key("NodeNameToMetaVictims");
  answer.StartObject();
  for (const auto& [node, of] : victims) {
    answer.Key(node);
    answer.StartObject();
    answer.Key("Pods");
    answer.StartArray();
    for (const std::string& uid : of.uids) {
      answer.StartObject();
      answer.Key("UID");
      answer.String(uid);
      answer.EndObject();
    }
    answer.EndArray();
    answer.Key("NumPDBViolations");
    answer.Int(of.violations);
    answer.EndObject();
  }
  answer.EndObject();
  answer.EndObject();
  return answer.Take();
}

std::string ErrorAnswer(std::string_view error) {
  return kube::ToText(kube::Json::MakeObject({{"Error", std::string(error)}}));
}

}  // namespace grus
