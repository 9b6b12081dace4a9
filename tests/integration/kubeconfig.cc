// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/kubeconfig.h"

#include "clientlib/auth/tls_material.h"
#include "tests/kit/must.h"

namespace grus::testing {

std::string KubeconfigText(const kube::ClientConfig& config, const std::string& server, const std::string& ca_pem) {
  using kube::EncodeBase64;
  using kube::Json;
  Json text = kit::FromText(R"({"apiVersion":"v1","kind":"Config","current-context":"test",
      "contexts":[{"name":"test","context":{"cluster":"test","user":"test"}}]})");
  text["clusters"].Append(Json::MakeObject(
      {{"name", "test"},
       {"cluster", Json::MakeObject({{"server", server}, {"certificate-authority-data", EncodeBase64(ca_pem)}})}}));
  text["users"].Append(
      Json::MakeObject({{"name", "test"},
                        {"user", Json::MakeObject({{"client-certificate-data", EncodeBase64(config.cert_pem)},
                                                   {"client-key-data", EncodeBase64(config.key_pem)}})}}));
  return ToText(text);
}

std::string ServerAt(int port) { return "https://127.0.0.1:" + std::to_string(port); }

int ServerPort(const kube::ClientConfig& config) {
  return std::stoi(config.server.substr(config.server.rfind(':') + 1));
}

}  // namespace grus::testing
