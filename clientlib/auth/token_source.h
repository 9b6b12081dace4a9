// SPDX-License-Identifier: Apache-2.0
// The Authorization header of each request, kept fresh.
//
// A token file is read again once a minute; if a read fails the old token stays in use. A token that the
// server refused (401) is read again at once. Exec credential plugins run once at a time, outside any I/O
// thread. Thread-safe.
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

  // "Bearer ..." or "Basic ..."; empty if the identity is a client certificate or none. May block on a file
  // or a plugin.
  virtual Result<std::string> AuthorizationHeader() = 0;

  // The certificate that an exec plugin gave, for CurlTransport::Reload(); nullopt from all other sources:
  // theirs stands in the ClientConfig. May block as AuthorizationHeader().
  virtual Result<std::optional<ClientCertificate>> PluginCertificate() { return std::optional<ClientCertificate>(); }

  // The server answered 401 to a request that was sent at `sent`: credentials older than that are dropped.
  virtual void Refused(TimePoint sent) = 0;
};

// The first that `config` has of: token file, token, exec plugin (unless there is a client certificate), user
// name. Never null. `clock` must outlive it.
std::unique_ptr<TokenSource> MakeTokenSource(const ClientConfig& config, const Clock& clock);

}  // namespace kube
