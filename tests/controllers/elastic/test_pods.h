// SPDX-License-Identifier: Apache-2.0
// The pods of the test job and its host list, as a view has them. Times are seconds from the moment of the view.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controllers/elastic/elastic_view.h"
#include "tests/controllers/elastic/test_job.h"

namespace grus {

inline std::string AddressOf(int ordinal) { return "10.0.0." + std::to_string(ordinal + 1); }

// Created, and waiting for the scheduler.
inline Worker TestWorker(int ordinal) {
  Worker worker;
  worker.ordinal = ordinal;
  worker.name = PodName(ordinal);
  worker.uid = "uid-" + std::to_string(ordinal);
  worker.address = AddressOf(ordinal);
  return worker;
}

inline LauncherPod RunningLauncher(int pushed_revision) {
  LauncherPod pod;
  pod.name = "bert-launcher-x";
  pod.uid = "launcher-uid";
  pod.is_bound = true;
  pod.is_running = true;
  pod.hosts_revision = pushed_revision;
  return pod;
}

inline HostList TestHosts(const std::vector<int>& ordinals, int revision, int published) {
  HostList list;
  for (const int ordinal : ordinals) list.hosts.push_back({PodName(ordinal), AddressOf(ordinal)});
  list.revision = revision;
  list.published = At(published);
  return list;
}

}  // namespace grus
