// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/pod_security.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

using Names = std::vector<std::string>;

std::string Joined(const Names& items, std::string_view between) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : std::string(between)) + item;
  return text;
}
std::string Quoted(const Names& items) { return "\"" + Joined(items, "\", \"") + "\""; }
std::string Plural(std::string_view word, std::size_t count) { return std::string(word) + (count == 1 ? "" : "s"); }
// `container "a"`, `containers "a", "b"`
std::string Counted(std::string_view word, const Names& names) {
  return Plural(word, names.size()) + " " + Quoted(names);
}

// The names of the containers for which `is_it` is true, init containers first.
Names Containers(const Json& pod, const std::function<bool(const Json& container)>& is_it) {
  Names names;
  for (const std::string_view list : {"initContainers", "containers"}) {
    for (const Json& container : ItemsAt(pod, {"spec", list})) {
      if (is_it(container)) names.emplace_back(TextAt(container, {"name"}));
    }
  }
  return names;
}
const Json* ContextOf(const Json& container, std::string_view field) {
  return container.At({"securityContext", field});
}

// The text of a failed check: "privileged (container "c" must not ...)".
std::string Said(std::string_view reason, const std::string& detail) {
  return std::string(reason) + " (" + detail + ")";
}

std::string HostNamespaces(const Json& pod) {
  Names bad;
  for (const char* const field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (IsTrueAt(pod, {"spec", field})) bad.push_back(std::string(field) + "=true");
  }
  return bad.empty() ? "" : Said("host namespaces", Joined(bad, ", "));
}

std::string HostPathVolumes(const Json& pod) {
  Names bad;
  for (const Json& volume : ItemsAt(pod, {"spec", "volumes"})) {
    if (volume.Find("hostPath")) bad.emplace_back(TextAt(volume, {"name"}));
  }
  return bad.empty() ? "" : Said("hostPath volumes", Counted("volume", bad));
}

std::string HostPorts(const Json& pod) {
  std::set<std::string> ports;
  const Names bad = Containers(pod, [&](const Json& container) {
    bool is_bad = false;
    for (const Json& port : ItemsAt(container, {"ports"})) {
      const std::int64_t number = IntAt(port, {"hostPort"});
      if (number != 0) ports.insert(std::to_string(number));
      is_bad |= number != 0;
    }
    return is_bad;
  });
  if (bad.empty()) return {};
  return Said("hostPort", Counted("container", bad) + (bad.size() == 1 ? " uses " : " use ") +
                              Plural("hostPort", ports.size()) + " " + Joined({ports.begin(), ports.end()}, ", "));
}

std::string Privileged(const Json& pod) {
  const Names bad = Containers(pod, [](const Json& container) {
    return IsTrueAt(container, {"securityContext", "privileged"});
  });
  return bad.empty() ? ""
                     : Said("privileged", Counted("container", bad) + " must not set securityContext.privileged=true");
}

std::string PrivilegeEscalation(const Json& pod) {
  const Names bad = Containers(pod, [](const Json& container) {
    const Json* const allowed = ContextOf(container, "allowPrivilegeEscalation");
    return !allowed || !(*allowed == Json(false));
  });
  if (bad.empty()) return {};
  return Said("allowPrivilegeEscalation != false",
              Counted("container", bad) + " must set securityContext.allowPrivilegeEscalation=false");
}

std::string Capabilities(const Json& pod) {
  std::set<std::string> added;
  const Names keeping = Containers(pod, [](const Json& container) {
    const Json::Array& drop = ItemsAt(container, {"securityContext", "capabilities", "drop"});
    return std::find(drop.begin(), drop.end(), Json("ALL")) == drop.end();
  });
  const Names adding = Containers(pod, [&](const Json& container) {
    bool is_bad = false;
    for (const Json& item : ItemsAt(container, {"securityContext", "capabilities", "add"})) {
      if (!item.AsString() || *item.AsString() == "NET_BIND_SERVICE") continue;
      added.insert(*item.AsString());
      is_bad = true;
    }
    return is_bad;
  });
  Names details;
  if (!keeping.empty()) {
    details.push_back(Counted("container", keeping) + R"( must set securityContext.capabilities.drop=["ALL"])");
  }
  if (!adding.empty()) {
    details.push_back(Counted("container", adding) + " must not include " + Quoted({added.begin(), added.end()}) +
                      " in securityContext.capabilities.add");
  }
  return details.empty() ? "" : Said("unrestricted capabilities", Joined(details, "; "));
}

std::string VolumeTypes(const Json& pod) {
  constexpr std::string_view kAllowed[] = {"configMap", "csi",   "downwardAPI",           "emptyDir",
                                           "ephemeral", "image", "persistentVolumeClaim", "projected",
                                           "secret"};
  Names bad;
  std::set<std::string> types;
  for (const Json& volume : ItemsAt(pod, {"spec", "volumes"})) {
    for (const auto& [type, source] : *volume.AsObject()) {
      if (type == "name" || std::find(std::begin(kAllowed), std::end(kAllowed), type) != std::end(kAllowed)) continue;
      bad.emplace_back(TextAt(volume, {"name"}));
      types.insert(type);
    }
  }
  if (bad.empty()) return {};
  return Said("restricted volume types", Counted("volume", bad) + (bad.size() == 1 ? " uses " : " use ") +
                                             Counted("restricted volume type", {types.begin(), types.end()}));
}

// "pod", "container "c"" or both: those that set the field to a bad value.
std::string Setters(const Json& pod, std::string_view field, const std::function<bool(const Json& value)>& is_bad) {
  const auto sets = [&](const Json& object) {
    const Json* const value = ContextOf(object, field);
    return value && is_bad(*value);
  };
  Names setters;
  if (const Json* const spec = pod.Find("spec"); spec && sets(*spec)) setters.emplace_back("pod");
  if (const Names bad = Containers(pod, sets); !bad.empty()) setters.push_back(Counted("container", bad));
  return Joined(setters, " and ");
}

// Checks a field that the pod or each of its containers must set to a good value. `must`: what to set.
std::string MustBeSet(const Json& pod, std::string_view field, std::string_view reason,
                      const std::function<bool(const Json& value)>& is_bad, const std::string& must_not,
                      std::string_view must) {
  if (const std::string setters = Setters(pod, field, is_bad); !setters.empty()) {
    return Said(reason, setters + " must not set " + must_not);
  }
  if (const Json* const spec = pod.Find("spec"); spec && ContextOf(*spec, field)) return {};
  const Names lacking = Containers(pod, [&](const Json& container) { return !ContextOf(container, field); });
  if (lacking.empty()) return {};
  return Said(reason, "pod or " + Counted("container", lacking) + " must set " + std::string(must));
}

// Root in a user namespace is an unprivileged user outside.
bool HasItsOwnUsers(const Json& pod) {
  const Json* const is_host = pod.At({"spec", "hostUsers"});
  return is_host && *is_host == Json(false);
}

std::string NonRoot(const Json& pod) {
  if (HasItsOwnUsers(pod)) return {};
  return MustBeSet(
      pod, "runAsNonRoot", "runAsNonRoot != true", [](const Json& value) { return value == Json(false); },
      "securityContext.runAsNonRoot=false", "securityContext.runAsNonRoot=true");
}

std::string User(const Json& pod) {
  if (HasItsOwnUsers(pod)) return {};
  const std::string setters = Setters(pod, "runAsUser", [](const Json& value) { return value == Json(0); });
  return setters.empty() ? "" : Said("runAsUser=0", setters + " must not set runAsUser=0");
}

std::string Seccomp(const Json& pod) {
  std::set<std::string> types;
  const auto is_bad = [&](const Json& profile) {
    const std::string type(TextAt(profile, {"type"}));
    const bool is_allowed = type == "RuntimeDefault" || type == "Localhost";
    if (!is_allowed) types.insert(type);
    return !is_allowed;
  };
  (void)Setters(pod, "seccompProfile", is_bad);  // Collects the types, which are part of the text.
  return MustBeSet(pod, "seccompProfile", "seccompProfile", is_bad,
                   "securityContext.seccompProfile.type to " + Quoted({types.begin(), types.end()}),
                   R"(securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")");
}

}  // namespace

std::string PodSecurityViolation(const Json& ns, const Json& pod) {
  const std::string_view level = TextAt(ns, {"metadata", "labels", kEnforceLabel});
  const bool is_restricted = level == "restricted";
  if (!is_restricted && level != "baseline") return {};
  std::vector<std::string (*)(const Json&)> checks{HostNamespaces};  // By name, as the server reports them.
  if (!is_restricted) checks.push_back(HostPathVolumes);             // The restricted level has its own check.
  checks.insert(checks.end(), {HostPorts, Privileged});
  if (is_restricted) {
    checks.insert(checks.end(), {PrivilegeEscalation, Capabilities, VolumeTypes, NonRoot, User, Seccomp});
  }
  Names said;
  for (const auto check : checks) {
    if (std::string text = check(pod); !text.empty()) said.push_back(std::move(text));
  }
  if (said.empty()) return {};
  std::string_view version = TextAt(ns, {"metadata", "labels", "pod-security.kubernetes.io/enforce-version"});
  if (version.empty()) version = "latest";
  return "violates PodSecurity \"" + std::string(level) + ":" + std::string(version) + "\": " + Joined(said, ", ");
}

}  // namespace kube::testing
