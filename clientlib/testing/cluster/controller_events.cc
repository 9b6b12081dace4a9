// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/controller_events.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

// events_cache.go
constexpr std::size_t kMostMessages = 10;
constexpr Duration kMessagesCount = 10min;
constexpr double kBurst = 25;
constexpr Duration kOneMore = 5min;
constexpr Duration kRemembered = 3h;  // Longer than the burst takes to come back.

std::string Joined(const Json& event, std::initializer_list<std::string_view> members) {
  std::string key(TextAt(event, {"involvedObject", "uid"}));
  for (const std::string_view member : members) key += "\n" + std::string(TextAt(event, {member}));
  return key;
}

}  // namespace

void ControllerEvents::Record(const Json& about, std::string_view type, std::string_view reason, std::string message) {
  Json event = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Event"}});
  Json& object = event["involvedObject"];
  for (const std::string_view field : {"apiVersion", "kind"}) object[field] = TextAt(about, {field});
  for (const std::string_view field : {"namespace", "name", "uid", "resourceVersion"}) {
    object[field] = TextAt(about, {"metadata", field});
  }
  event["type"] = type;
  event["reason"] = reason;
  event["message"] = std::move(message);
  event["source"] = Json::MakeObject({{"component", component_}});
  event["reportingComponent"] = component_;
  event["reportingInstance"] = "";
  event["firstTimestamp"] = event["lastTimestamp"] = context_.Now();
  event["count"] = 1;
  context_.simulation.After(context_.Draw(context_.options.events),
                            [this, event = std::move(event)]() mutable { Write(std::move(event)); });
}

void ControllerEvents::ForgetOld() {
  const TimePoint now = context_.simulation.Now();
  if (now - forgot_at_ < kRemembered) return;
  forgot_at_ = now;
  std::erase_if(similar_, [&](const auto& entry) { return now - entry.second.last > kRemembered; });
  std::erase_if(budgets_, [&](const auto& entry) { return now - entry.second.since > kRemembered; });
  std::erase_if(written_, [&](const auto& entry) { return now - entry.second.last > kRemembered; });
}

void ControllerEvents::Write(Json event) {
  ForgetOld();
  std::string key = Joined(event, {"type", "reason", "message"});
  const std::string kind_of_event = Joined(event, {"type", "reason"});
  const TimePoint now = context_.simulation.Now();
  Similar& similar = similar_[kind_of_event];
  if (now - similar.last > kMessagesCount) similar.messages.clear();
  similar.last = now;
  similar.messages.emplace(TextAt(event, {"message"}));
  if (similar.messages.size() >= kMostMessages) {
    similar.messages.erase(similar.messages.begin());
    event["message"] = "(combined from similar events): " + std::string(TextAt(event, {"message"}));
    key = kind_of_event;
  }

  Written& written = written_[key];
  ++written.count;
  written.last = now;
  // Events that are not written still count.
  if (IsTooMuch(Joined(event, {"type"}))) return;
  const std::string ns(TextAt(event, {"involvedObject", "namespace"}));
  event["count"] = written.count;
  if (!written.name.empty()) {
    event["firstTimestamp"] = written.first;
    if (Count(ns, written, event)) return;
  }
  const auto nanos = std::chrono::nanoseconds(context_.simulation.WallNow().time_since_epoch()).count();
  last_ = std::max(last_ + 1, static_cast<std::uint64_t>(nanos));
  std::ostringstream name;
  name << TextAt(event, {"involvedObject", "name"}) << "." << std::hex << last_;
  written.name = name.str();
  written.first = TextAt(event, {"firstTimestamp"});
  event["metadata"] = Json::MakeObject({{"name", written.name}, {"namespace", ns}});
  // Refused in a terminating namespace; no controller tries again.
  (void)context_.server.Create("events", std::move(event));
}

bool ControllerEvents::IsTooMuch(const std::string& object_and_type) {
  const TimePoint now = context_.simulation.Now();
  Budget& budget = budgets_.try_emplace(object_and_type, Budget{kBurst, now}).first->second;
  budget.left = std::min(kBurst, budget.left + std::chrono::duration<double>(now - budget.since) / kOneMore);
  budget.since = now;
  if (budget.left < 1) return true;
  budget.left -= 1;
  return false;
}

bool ControllerEvents::Count(const std::string& ns, const Written& written, const Json& event) {
  const FakeApiServer::ObjectPtr there = context_.server.Get("events", {ns, written.name});
  if (!there) return false;
  return context_.Modify("events", {ns, written.name}, UidOf(*there), {}, [&](Json& object) {
    for (const std::string_view field : {"count", "lastTimestamp", "message"}) object[field] = *event.Find(field);
    return true;
  });
}

}  // namespace kube::testing
