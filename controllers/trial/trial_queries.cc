// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_queries.h"

#include <algorithm>
#include <utility>

namespace grus {
namespace {

std::string OverWorkers(const std::string& aggregate, const std::string& metric, const std::string& ns,
                        const std::string& job, std::int64_t seconds) {
  const auto series = [&](const std::string& prefix) {
    return aggregate + "_over_time(" + metric + "{" + prefix + "namespace=\"" + ns + "\"," + prefix + "pod=~\"" + job +
           "(-workers)?(-[0-9]+)?\"}[" + std::to_string(std::max<std::int64_t>(1, seconds)) + "s])";
  };
  return aggregate + "(" + series("") + " or " + series("exported_") + ")";
}

}  // namespace

std::string ExpandQuery(std::string query, const std::string& ns, const std::string& job) {
  for (const auto& [name, value] : {std::pair{std::string("$NAMESPACE"), ns}, std::pair{std::string("$JOB"), job}}) {
    for (std::size_t at = query.find(name); at != std::string::npos; at = query.find(name, at + value.size())) {
      query.replace(at, name.size(), value);
    }
  }
  return query;
}

std::string PeakMemoryQuery(const std::string& ns, const std::string& job, std::int64_t seconds) {
  return OverWorkers("max", "DCGM_FI_DEV_FB_USED", ns, job, seconds);
}

std::string UtilizationQuery(const std::string& ns, const std::string& job, std::int64_t seconds) {
  return OverWorkers("avg", "DCGM_FI_DEV_GPU_UTIL", ns, job, seconds);
}

}  // namespace grus
