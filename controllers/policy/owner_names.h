// SPDX-License-Identifier: Apache-2.0
// Names of owners in the ledger: "namespace/name" of a job or gang, with the API group in front for legacy PodGroups;
// LauncherOwner() of a job; OwnerOfOthers() of a namespace. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace grus {

// A job's launcher is an owner of its own: a bound worker must not end the launcher's place, nor the other way round.
std::string LauncherOwner(const std::string& job);
// The job, if it is the owner of a launcher; else the owner itself.
std::string WithoutLauncher(const std::string& owner);

// The owner of pods that belong to no job or gang.
std::string OwnerOfOthers(std::string_view ns);
bool IsOwnerOfOthers(std::string_view owner);

std::string_view NamespaceOf(std::string_view owner);

}  // namespace grus
