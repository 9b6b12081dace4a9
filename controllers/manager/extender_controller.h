// SPDX-License-Identifier: Apache-2.0
// What a kube-scheduler asks, and what that needs to know.
#pragma once

#include <optional>

#include "controllers/extender/extender.h"
#include "controllers/extender/interference_watch.h"
#include "controllers/extender/sharing_advisor.h"
#include "controllers/extender/utilization_watch.h"
#include "controllers/manager/shared.h"

namespace grus {

struct ExtenderController {
  // REQUIRES: `with` has profiles; the informers are not started yet. What it shares must outlive it.
  ExtenderController(const Shared& with, kube::Registry& metrics);

  SharingAdvisor advisor;
  InterferenceWatch interference;
  Extender extender;
  std::optional<Prometheus> prometheus;
  std::optional<UtilizationWatch> utilization;
};

}  // namespace grus
