// SPDX-License-Identifier: Apache-2.0
// LoadKubeconfig() of one file. What it names is read from memory and nothing is run. Rules: a configuration
// has a server, a path to read is absolute, and the one-line description shows no password.
#include <string>

#include "clientlib/auth/kubeconfig.h"
#include "tests/fuzz/check.h"

namespace {

constexpr std::string_view kFile = "/etc/grus/config";
constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  const auto read = [&](const std::string& path) -> kube::Result<std::string> {
    fuzz::Require(path.starts_with('/'), "a path to read is absolute");
    if (path == kFile) return std::string(text);
    if (path.ends_with(".pem")) return std::string(kPem);
    if (path.ends_with("token")) return std::string("from-a-file\n");
    return kube::Error(kube::ErrorCode::kNotFound, "read " + path + ": no such file or directory");
  };
  const kube::Result<kube::ClientConfig> config = kube::LoadKubeconfig({.path = std::string(kFile)}, read);
  if (!config) {
    fuzz::Require(!config.error().message().empty(), "an error says what is wrong");
    return 0;
  }
  fuzz::Require(config->server.starts_with("http://") || config->server.starts_with("https://"), "there is a server");
  fuzz::Require(config->cert_pem.empty() == config->key_pem.empty(), "a certificate comes with its key");
  fuzz::Require(!config->exec || !config->exec->command.empty(), "a plugin has a command");

  kube::ClientConfig other = *config;
  other.password += "x";
  other.token += other.token.empty() ? "" : "x";
  other.key_pem += other.key_pem.empty() ? "" : "x";
  fuzz::Require(kube::Describe(other) == kube::Describe(*config), "a description does not depend on secrets");
  return 0;
}
