// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/run_job.h"

namespace grus {

RunJob RunJobOf(const std::string& name) {
  const std::size_t first = name.find('/'), last = name.rfind('/');
  RunJob job{name.substr(0, first), {}};
  if (first != last) job.key = {name.substr(first + 1, last - first - 1), name.substr(last + 1)};
  return job;
}

}  // namespace grus
