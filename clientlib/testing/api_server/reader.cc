// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/reader.h"

#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

constexpr std::chrono::seconds kLongestWatch{1800};  // Without timeoutSeconds: the server's minimum.

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

ApiError BadVersion(std::string_view text) {
  const std::string quoted = Concat({"\"", text}) + "\"";
  return BadRequest("invalid resource version: resourceVersion: Invalid value: " + quoted +
                    ": strconv.ParseUint: parsing " + quoted + ": invalid syntax");
}

// Where a list continues: opaque to clients.
struct Position {
  std::int64_t version = 0;  // -1: the current one.
  ObjectKey after;
};

std::string ToToken(const Position& position) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const char c : std::to_string(position.version) + "/" + position.after.ns + "/" + position.after.name) {
    token += kDigits[static_cast<unsigned char>(c) >> 4];
    token += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return token;
}

std::optional<Position> FromToken(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] =
        std::from_chars(token.data() + i, token.data() + std::min(i + 2, token.size()), value, 16);
    if (error != std::errc() || end != token.data() + i + 2) return std::nullopt;
    text += static_cast<char>(value);
  }
  const std::size_t first = text.find('/'), second = text.rfind('/');
  if (first == std::string::npos || first == second) return std::nullopt;
  Position position;
  const auto [end, error] = std::from_chars(text.data(), text.data() + first, position.version);
  if (error != std::errc() || end != text.data() + first) return std::nullopt;
  position.after = {text.substr(first + 1, second - first - 1), text.substr(second + 1)};
  return position;
}

Check CheckListOptions(const Storage& storage, const Target& target, bool is_watch) {
  for (const std::string_view name : {"limit", "timeoutSeconds"}) {
    const std::string_view text = target.Query(name);
    if (text.empty() || ParseNumber(text.substr(text.starts_with('-') ? 1 : 0))) continue;
    return BadRequest(Concat({"strconv.ParseInt: parsing \"", text, "\": invalid syntax"}));
  }
  std::vector<FieldError> errors;
  const std::string_view match = target.Query("resourceVersionMatch"), version = target.Query("resourceVersion");
  const bool has_initial = target.HasQuery("sendInitialEvents");
  if (!match.empty() && match != "Exact" && match != "NotOlderThan") {
    errors.push_back({"FieldValueNotSupported",
                      Concat({"Unsupported value: \"", match}) + R"(": supported values: "Exact", "NotOlderThan", "")",
                      "resourceVersionMatch"});
  } else if (!match.empty() && is_watch && !has_initial) {
    errors.push_back(ForbiddenField("resourceVersionMatch",
                                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents "
                                    "is provided"));
  } else if (!match.empty() && !is_watch && version.empty()) {
    errors.push_back(
        ForbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"));
  } else if (!match.empty() && !is_watch && target.HasQuery("continue") && !target.Query("continue").empty()) {
    errors.push_back(
        ForbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
  } else if (match == "Exact" && !is_watch && version == "0") {
    errors.push_back(ForbiddenField("resourceVersionMatch",
                                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
  }
  if (has_initial && !is_watch) {
    errors.push_back(ForbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  } else if (has_initial && !storage.options().has_watch_list) {
    errors.push_back(ForbiddenField("sendInitialEvents",
                                    "sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
                                    "enabled"));
  } else if (has_initial && match != "NotOlderThan") {
    errors.push_back(ForbiddenField("resourceVersionMatch",
                                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    if (!match.empty()) {
      errors.push_back({"FieldValueNotSupported",
                        Concat({"Unsupported value: \"", match, R"(": supported values: "NotOlderThan")"}),
                        "resourceVersionMatch"});
    }
  }
  if (!errors.empty()) return Invalid("meta.k8s.io", "ListOptions", "", errors);
  return Done();
}

using Objects = std::map<ObjectKey, RevisionPtr>;

// What a list request asks for.
struct ListPlan {
  std::uint64_t version = 0;         // Of the answer.
  std::optional<Objects> past = {};  // The objects at `version`, unless it is current.
  std::optional<ObjectKey> after = {};
  std::size_t limit = 0;  // 0: none.
};

ApiError ExpiredPage(const Position& position) {
  ApiError error = Expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list "
      "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
      "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
      "modified, or deleted between the time the first chunk was returned and now may show up in the list.");
  error.continue_token = ToToken({-1, position.after});
  return error;
}

Outcome<ListPlan> PlanList(const Storage& storage, const Table& table, const Target& target) {
  const std::string_view match = target.Query("resourceVersionMatch"), version = target.Query("resourceVersion");
  ListPlan plan{.version = storage.revision()};
  const std::optional<std::uint64_t> limit = ParseNumber(target.Query("limit"));
  plan.limit = limit.value_or(0);
  if (const std::string_view token = target.Query("continue"); !token.empty()) {
    const std::optional<Position> position = FromToken(token);
    if (!position) return BadRequest("invalid continue token: continue key is not valid: it is none of this server");
    if (!version.empty() && version != "0") {
      return BadRequest("specifying resource version is not allowed when using continue");
    }
    plan.after = position->after;
    if (position->version < 0) return plan;
    plan.version = static_cast<std::uint64_t>(position->version);
    Outcome<Objects> past = storage.At(table, plan.version);
    if (!past) return ExpiredPage(*position);
    plan.past = std::move(*past);
    return plan;
  }
  if (version.empty()) return plan;
  const std::optional<std::uint64_t> wanted = ParseNumber(version);
  if (!wanted) return BadVersion(version);
  if (*wanted == 0) {
    plan.limit = 0;  // Served from the watch cache, which has no pages.
    return plan;
  }
  if (*wanted > plan.version) return TooLargeVersion(*wanted, plan.version);
  if (match == "Exact" || (match.empty() && plan.limit > 0)) {
    Outcome<Objects> past = storage.At(table, *wanted);
    if (!past) return past.error();
    plan.past = std::move(*past);
    plan.version = *wanted;
  }
  return plan;
}

}  // namespace

std::string PartialText(const Json& object) {
  const Json* const metadata = object.Find("metadata");
  return Concat({R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":)",
                 metadata ? ToText(*metadata) : "{}", "}"});
}

Outcome<std::string> ListText(const Storage& storage, const Table& table, std::string_view ns, const Target& target,
                              bool is_partial) {
  const ResourceInfo& info = *table.info;
  if (Check valid = CheckListOptions(storage, target, false); !valid) return valid.error();
  Outcome<Selector> selector = Selector::Parse(info, target.Query("labelSelector"), target.Query("fieldSelector"));
  if (!selector) return selector.error();
  Outcome<ListPlan> plan = PlanList(storage, table, target);
  if (!plan) return plan.error();

  const Objects& objects = plan->past ? *plan->past : table.objects;
  auto at = plan->after ? objects.upper_bound(*plan->after) : objects.lower_bound({std::string(ns), ""});
  std::string items;
  std::size_t count = 0, left = 0;
  const Revision* last = nullptr;
  // Items of built-in kinds do not repeat their kind and version, with which each text begins.
  const std::string kind_text = R"("kind":")" + info.kind + R"(","apiVersion":")" + info.ApiVersion() + R"(",)";
  for (; at != objects.end() && (ns.empty() || at->first.ns == ns); ++at) {
    if (!selector->Matches(at->second->object())) continue;
    if (plan->limit > 0 && count == plan->limit) {
      ++left;
      continue;
    }
    last = at->second.get();
    if (count++ > 0) items += ',';
    if (is_partial) {
      items += PartialText(last->object());
      continue;
    }
    std::string_view text = last->Text();
    if (!info.is_custom && text.substr(1).starts_with(kind_text)) {
      items += '{';
      text.remove_prefix(1 + kind_text.size());
    }
    items += text;
  }
  Json metadata = Json::MakeObject({{"resourceVersion", std::to_string(plan->version)}});
  if (left > 0) {
    metadata["continue"] = ToToken({static_cast<std::int64_t>(plan->version), KeyOf(last->object())});
    if (selector->empty()) metadata["remainingItemCount"] = left;
  }
  std::string body =
      Concat({R"({"kind":")", is_partial ? "PartialObjectMetadata" : info.kind, R"(List","apiVersion":")",
              is_partial ? "meta.k8s.io/v1" : info.ApiVersion(), R"(","metadata":)"});
  body += ToText(metadata);
  body.append(R"(,"items":[)").append(items).append("]}");
  return body;
}

Outcome<std::shared_ptr<WatchQueue>> StartWatch(Storage& storage, const Clock& clock, Table& table, std::string_view ns,
                                                const Target& target) {
  if (Check valid = CheckListOptions(storage, target, true); !valid) return valid.error();
  Outcome<Selector> selector =
      Selector::Parse(*table.info, target.Query("labelSelector"), target.Query("fieldSelector"));
  if (!selector) return selector.error();
  const std::string_view version = target.Query("resourceVersion");
  const std::optional<std::uint64_t> from = version.empty() ? 0 : ParseNumber(version);
  if (!from) {
    ApiError error = BadVersion(version);
    error.code = 500;
    error.message.erase(0, std::string_view("invalid resource version: ").size());
    error.reason.clear();
    return error;
  }
  const std::optional<std::uint64_t> seconds = ParseNumber(target.Query("timeoutSeconds"));
  const Duration length = seconds.value_or(0) > 0 ? Duration(std::chrono::seconds(*seconds)) : kLongestWatch;
  const bool is_asked = target.HasQuery("sendInitialEvents");
  const bool sends_initial = is_asked ? target.IsTrue("sendInitialEvents") : *from == 0;
  const auto queue = std::make_shared<WatchQueue>(
      table.info,
      WatchSettings{std::string(ns), std::move(*selector), target.IsTrue("allowWatchBookmarks"),
                    storage.options().bookmark_period, clock.Now() + length,
                    sends_initial || *from == 0 ? storage.revision() : *from},
      clock);
  if (sends_initial) {
    if (*from > storage.revision()) {
      queue->PushError(TooLargeVersion(*from, storage.revision()));
      return queue;
    }
    for (auto at = table.objects.lower_bound({std::string(ns), ""}); at != table.objects.end(); ++at) {
      if (!ns.empty() && at->first.ns != ns) break;
      queue->PushAdded(at->second);
    }
    queue->PushInitialEnd(storage.revision());
  } else if (*from > 0) {
    if (*from < table.compacted) {
      queue->PushError(Expired(Concat({"too old resource version: ", std::to_string(*from)}) + " (" +
                               std::to_string(table.compacted) + ")"));
      return queue;
    }
    for (const Change& change : table.log) {
      if (change.number > *from) queue->Push(change);
    }
    if (*from > storage.revision()) queue->SkipUntil(*from);
  }
  std::erase_if(table.watches, [](const auto& watch) { return watch->is_closed(); });
  table.watches.push_back(queue);
  return queue;
}

Check CheckVersion(const Storage& storage, const Target& target) {
  const std::string_view version = target.Query("resourceVersion");
  if (version.empty()) return Done();
  const std::optional<std::uint64_t> wanted = ParseNumber(version);
  if (!wanted) return BadVersion(version);
  if (*wanted > storage.revision()) return TooLargeVersion(*wanted, storage.revision());
  return Done();
}

}  // namespace kube::testing
