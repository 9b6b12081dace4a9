// SPDX-License-Identifier: Apache-2.0
// The extender's HTTP side: its paths, who may call it, and with what certificate.
#pragma once

#include <functional>
#include <memory>

#include "clientlib/base/log.h"
#include "clientlib/runtime/http_server.h"
#include "controllers/extender/extender.h"
#include "controllers/manager/options.h"

namespace grus {

struct ExtenderState {
  std::function<bool()> is_ready = {}, leads = {};  // Thread-safe.
};

// Serves /scheduler/filter, prioritize, preempt and bind, and what gpushare's extender serves:
// /gpushare-scheduler/filter, bind, inspect and inspect/NODE, and /version. While not `is_ready`, 503: its caches may
// know nothing yet; so is bind while this process does not lead. bind is 403 unless clients must have a certificate
// (options.extender_client_ca_file): it acts with grus' own rights. All must outlive it. Errors: an address that is
// taken, files that make no sense.
kube::Result<std::unique_ptr<kube::HttpServer>> ServeExtender(const Options& options, Extender& extender,
                                                              ExtenderState state, const kube::Log& log);

}  // namespace grus
