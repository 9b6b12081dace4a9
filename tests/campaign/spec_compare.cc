// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/spec_compare.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"

namespace grus::testing {
namespace {

constexpr char kJob[] = "elastichorovodjobs.ai.centauruscloud.io default/train";
constexpr char kLauncher[] = "jobs.batch default/train-launcher";
constexpr char kHosts[] = "configmaps default/train-hosts";
constexpr char kWorkerPods[] = "pods default/train-workers-*", kLauncherPods[] = "pods default/train-launcher-*";

const Json* Find(const Snapshot& snapshot, const std::string& key) {
  const auto it = snapshot.find(key);
  return it == snapshot.end() ? nullptr : &it->second;
}

// A list; null: there are none.
Json* Pods(Snapshot& snapshot, const char* key) {
  const auto it = snapshot.find(key);
  return it == snapshot.end() ? nullptr : &it->second;
}

// The objects of one name, which stand there one after the other.
Json Split(const std::string& text) {
  Json objects = Json::MakeArray();
  int depth = 0;
  bool is_string = false;
  for (std::size_t i = 0, from = 0; i < text.size(); ++i) {
    if (is_string && text[i] == '\\') ++i;
    else if (text[i] == '"') is_string = !is_string;
    else if (!is_string && text[i] == '{') ++depth;
    else if (!is_string && text[i] == '}' && --depth == 0) {
      kube::Result<Json> object = kube::ParseJson(std::string_view(text).substr(from, i + 1 - from));
      if (!object) throw std::logic_error(object.error().message());
      objects.Append(*std::move(object));
      from = i + 1;
    }
  }
  return objects;
}

std::int64_t Count(const Snapshot& snapshot, std::string_view which) {
  const Json* job = Find(snapshot, kJob);
  const Json* count = job ? job->At({"status", "replicas", which}) : nullptr;
  return count && count->AsInt() ? *count->AsInt() : 0;
}

const Json* Condition(const Snapshot& snapshot, std::string_view type) {
  const Json* job = Find(snapshot, kJob);
  const Json* conditions = job ? job->At({"status", "conditions"}) : nullptr;
  if (conditions == nullptr || conditions->AsArray() == nullptr) return nullptr;
  for (const Json& condition : *conditions->AsArray()) {
    if (*condition.Find("type") == Json(type)) return &condition;
  }
  return nullptr;
}

// Kinds of history that never count. A job that was suspended once says that it is not now; one that never was says
// nothing.
void DropHistory(Snapshot& snapshot) {
  // A count of none is as good as no count.
  if (Json* status = snapshot.contains(kJob) ? snapshot[kJob].Find("status") : nullptr) {
    const Json* available = status->Find("availableReplicas");
    if (available && *available == Json(0)) status->Erase("availableReplicas");
  }
  const Json* condition = Condition(snapshot, "Suspended");
  if (condition == nullptr || *condition->Find("status") == Json("True")) return;
  std::erase_if(*snapshot[kJob]["status"]["conditions"].AsArray(),
                [](const Json& c) { return *c.Find("type") == Json("Suspended"); });
}

// A job that gave its workers back keeps the Service and the Secret for its next start; one that has not started never
// made them.
void DropEmptyChildren(Snapshot& snapshot) {
  if (snapshot.contains(kWorkerPods)) return;
  std::erase_if(snapshot, [](const auto& entry) {
    return entry.first.starts_with("services ") || entry.first.starts_with("secrets ");
  });
}

// Which ordinals run is the scheduler's choice.
void DropChance(Snapshot& snapshot) {
  if (const auto hosts = snapshot.find(kHosts); hosts != snapshot.end()) {
    for (Json& host : *hosts->second["data"]["hosts"].AsArray()) host = "*";
  }
  if (Json* pods = Pods(snapshot, kWorkerPods)) {
    for (Json& pod : *pods->AsArray()) {
      pod["metadata"] = Json();
      if (Json* spec = pod.Find("spec")) spec->Erase("hostname");
    }
  }
}

// A changed template reaches no pod that exists, and a Job's template cannot be changed at all: it counts from
// the next start.
void DropPodsAsMade(Snapshot& snapshot, const TemplateChange& change) {
  for (const char* key : {change.workers ? kWorkerPods : nullptr, change.launcher ? kLauncherPods : nullptr}) {
    Json* pods = key ? Pods(snapshot, key) : nullptr;
    if (pods == nullptr) continue;
    for (Json& pod : *pods->AsArray()) pod = Json::MakeObject({{"status", *pod.Find("status")}});
  }
  if (const auto launcher = snapshot.find(kLauncher); change.launcher && launcher != snapshot.end()) {
    launcher->second["spec"].Erase("template");
  }
}

// What runs goes on, wherever the new templates would let it go: only the spec can be compared.
void KeepSpecOnly(Snapshot& snapshot) {
  std::erase_if(snapshot, [](const auto& entry) { return entry.first != kJob; });
  snapshot[kJob].Erase("status");
  snapshot[kJob].Erase("metadata");
}

std::string Shortened(const std::string& a, const std::string& b) {
  const auto at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const std::size_t from = at > 60 ? at - 60 : 0;
  return "..." + a.substr(from, 160) + "... but ..." + b.substr(from, 160) + "...";
}

std::vector<std::string> Differences(const Snapshot& wanted, const Snapshot& found) {
  std::vector<std::string> differences;
  for (const auto& [key, object] : wanted) {
    const Json* other = Find(found, key);
    if (other == nullptr) differences.push_back(key + " is missing");
    else if (*other != object)
      differences.push_back(key + ": " + Shortened(kube::ToText(object), kube::ToText(*other)));
  }
  for (const auto& [key, object] : found) {
    if (!wanted.contains(key)) differences.push_back(key + " is there: " + kube::ToText(object).substr(0, 160));
  }
  return differences;
}

api::ElasticHorovodJob Decoded(const Json& job) {
  auto decoded = kube::Decode<api::ElasticHorovodJob>(kube::ToText(job));
  if (!decoded) throw std::invalid_argument(decoded.error().message());
  return **decoded;
}

void DropCommands(Json& launcher) {
  Json* containers = launcher["spec"]["template"]["spec"].Find("containers");
  if (containers == nullptr || containers->AsArray() == nullptr) return;
  for (Json& container : *containers->AsArray()) container.Erase("command");
}

// Workers are unschedulable, and the grace before the job shrinks is longer than any look at it.
bool WaitsForEver(const Snapshot& snapshot) {
  const Json* job = Find(snapshot, kJob);
  const Json* grace = job ? job->At({"spec", "elastic", "unschedulableGraceSeconds"}) : nullptr;
  return Count(snapshot, "unschedulable") > 0 && grace && grace->AsInt() && *grace->AsInt() > 600;
}

}  // namespace

Snapshot ParseSnapshot(const std::map<std::string, std::string>& state) {
  Snapshot snapshot;
  for (const auto& [key, text] : state) {
    Json objects = Split(text);
    snapshot[key] = key.starts_with("pods ") ? std::move(objects) : std::move(objects.AsArray()->at(0));
  }
  return snapshot;
}

std::string PhaseIn(const Snapshot& snapshot) {
  const Json* job = Find(snapshot, kJob);
  const Json* phase = job ? job->At({"status", "phase"}) : nullptr;
  return phase && phase->AsString() ? *phase->AsString() : std::string();
}

bool HasEnded(const Snapshot& snapshot) {
  const std::string phase = PhaseIn(snapshot);
  return phase.empty() || phase == "Succeeded" || phase == "Failed";
}

bool IsStalled(const Snapshot& snapshot) {
  const Json* condition = Condition(snapshot, "Stalled");
  return condition != nullptr && *condition->Find("status") == Json("True") && !HasEnded(snapshot);
}

bool IsShort(const Snapshot& snapshot) { return Count(snapshot, "granted") < Count(snapshot, "wanted"); }

bool IsForeign(const Json& job) {
  const Json* manager = job.At({"spec", "runPolicy", "managedBy"});
  return manager != nullptr && *manager != Json("") && *manager != Json("ai.centauruscloud.io/grus");
}

TemplateChange& TemplateChange::operator|=(const TemplateChange& other) {
  workers |= other.workers;
  launcher |= other.launcher;
  launcher_place |= other.launcher_place;
  start |= other.start;
  return *this;
}

TemplateChange ChangeBetween(const Json& job, const Json& other) {
  const api::ElasticHorovodJob a = Decoded(job), b = Decoded(other);
  TemplateChange change;
  change.workers = MakeWorker(a, 0, Gang::kNone) != MakeWorker(b, 0, Gang::kNone);
  Json launcher_a = MakeLauncher(a), launcher_b = MakeLauncher(b);
  change.launcher = launcher_a["spec"]["template"] != launcher_b["spec"]["template"];
  DropCommands(launcher_a);
  DropCommands(launcher_b);
  change.launcher_place = launcher_a["spec"]["template"] != launcher_b["spec"]["template"];
  change.start = SizesOf(a.spec).NeededToStart() != SizesOf(b.spec).NeededToStart() &&
                 SizesOf(a.spec).NeededToRun() == SizesOf(b.spec).NeededToRun();
  return change;
}

Judgement Judge(const Snapshot& fresh, const Snapshot& live, const TemplateChange& change, bool was_short) {
  Judgement judgement;
  if (HasEnded(fresh)) {
    // What is left of a job that failed at once is less than of one that ran before.
    if (PhaseIn(fresh) != PhaseIn(live))
      judgement.wrong = {"it is " + PhaseIn(live) + ", but would be " + PhaseIn(fresh)};
    return judgement;
  }
  if (change.start && PhaseIn(fresh) == kPhaseWaiting && PhaseIn(live) == kPhaseRunning) return judgement;
  if (IsStalled(fresh) && IsStalled(live)) {
    // What was there before the refusal is still there.
    const Json &a = *Condition(fresh, "Stalled"), &b = *Condition(live, "Stalled");
    if (a != b) judgement.wrong = {Shortened(kube::ToText(a), kube::ToText(b))};
    return judgement;
  }
  Snapshot wanted = fresh, found = live;
  const auto differ = [&](const std::function<void(Snapshot&)>& mask) {
    mask(wanted);
    mask(found);
    judgement.wrong = Differences(wanted, found);
    return !judgement.wrong.empty();
  };
  if (!differ(DropHistory) || !differ(DropEmptyChildren)) return judgement;
  if (was_short && !differ(DropChance)) return judgement;
  if (was_short && WaitsForEver(fresh)) {
    // The live one had shrunk before it was told to wait so long.
    if (PhaseIn(fresh) != PhaseIn(live)) return judgement;
    differ(KeepSpecOnly);
    return judgement;
  }
  if (!change.workers && !change.launcher) return judgement;
  judgement.is_by_history = true;
  if (!differ([&](Snapshot& snapshot) { DropPodsAsMade(snapshot, change); })) return judgement;
  if (!change.workers && !change.launcher_place) return judgement;
  differ(KeepSpecOnly);
  return judgement;
}

std::vector<std::string> ChangesOfOthers(Snapshot before, Snapshot after) {
  for (Snapshot* snapshot : {&before, &after}) (*snapshot)[kJob].Erase("spec");
  return Differences(before, after);
}

}  // namespace grus::testing
