// SPDX-License-Identifier: Apache-2.0
// Gives the Authorization header of each request.
//
// A token file is read again once a minute; if that fails, the old token stays in use. After an answer 401, the next
// request reads it again. An exec plugin runs on a thread of its own; one run serves all that ask meanwhile, and a
// token that is still valid is handed out until the new one is there. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "clientlib/auth/client_config.h"
#include "clientlib/base/clock.h"

namespace kube {

struct ClientCertificate {
  std::string cert_pem, key_pem;
  friend bool operator==(const ClientCertificate&, const ClientCertificate&) = default;
};

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // "Bearer ..." or "Basic ..."; empty if requests have a client certificate instead, or no identity. May block: it
  // reads a file, or waits for a plugin, for 5 s at most once there has been a token.
  virtual Result<std::string> AuthorizationHeader() = 0;

  // The certificate that an exec plugin gave, for CurlTransport::Reload(); nullopt from all other sources, whose
  // certificate is in the ClientConfig. May block, like AuthorizationHeader().
  virtual Result<std::optional<ClientCertificate>> PluginCertificate() { return std::optional<ClientCertificate>(); }

  // The server answered 401 to a request that was sent at `sent`: drops credentials that are not newer.
  virtual void Refused(TimePoint sent) = 0;
};

// Uses the first of these that `config` has: token file, token, exec plugin (unless there is a client certificate),
// user name. Never null. `clock` must outlive it.
std::unique_ptr<TokenSource> MakeTokenSource(const ClientConfig& config, const Clock& clock);

}  // namespace kube
