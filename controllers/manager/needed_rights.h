// SPDX-License-Identifier: Apache-2.0
// What the account of grus-manager must be allowed to do. The chart's roles grant the same; tests compare the two.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"
#include "clientlib/client/client.h"
#include "controllers/manager/options.h"

namespace grus {

struct Right {
  std::string_view verb, group, resource;  // `resource` of a subresource: "pods/status".
  std::string ns;                          // Empty: all of them, or none has it.
  std::string name;                        // Empty: all objects.
  std::string_view purpose;                // "children of jobs".

  std::string Text() const;  // "patch pods/status", "get leases.coordination.k8s.io/grus in grus-system".
};

// They name kinds as `options` does, which must outlive them.
std::vector<Right> NeededRights(const Options& options);

// Those of `rights` that the client's account does not have, in their order: one SelfSubjectAccessReview each, which
// everybody may make. Blocks. Errors: those of the client.
kube::Result<std::vector<Right>> MissingRights(kube::Client& client, const std::vector<Right>& rights,
                                               const kube::Clock& clock, std::stop_token stop);

}  // namespace grus
