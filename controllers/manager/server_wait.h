// SPDX-License-Identifier: Apache-2.0
// The wait for an API server that answers and serves our kinds, before anything else begins.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/client/connection.h"

namespace grus {

// Until it serves `kinds`. What waiting may mend is logged, one line a try; what it cannot is the error: a certificate
// that is not trusted, credentials that are refused. `ns`: one in which we may list these kinds; empty: all.
kube::Status WaitForServer(kube::Connection& connection, const std::vector<const kube::Kind*>& kinds,
                           const std::string& ns, const kube::Clock& clock, const kube::Log& log, std::stop_token stop);

}  // namespace grus
