// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/client_config.h"

namespace kube {
namespace {

std::string IdentityKind(const ClientConfig& config) {
  if (!config.token_file.empty()) return "token file " + config.token_file;
  if (!config.token.empty()) return "bearer token";
  if (config.exec) return "exec plugin " + config.exec->command;
  if (!config.username.empty()) return "user name and password";
  if (!config.cert_pem.empty()) return "client certificate";
  return "no credentials";
}

}  // namespace

std::string Describe(const ClientConfig& config) {
  std::string line = config.server + " with " + IdentityKind(config);
  if (!config.impersonate_user.empty()) line += ", as " + config.impersonate_user;
  if (config.insecure_skip_verify) line += ", server certificate not verified";
  if (!config.source.empty()) line += " (" + config.source + ")";
  return line;
}

}  // namespace kube
