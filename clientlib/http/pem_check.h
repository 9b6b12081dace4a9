// SPDX-License-Identifier: Apache-2.0
// Refuses early the PEM text that OpenSSL would refuse during a handshake, with a worse message. Pure functions on
// values.
#pragma once

#include <string>

#include "clientlib/base/result.h"

namespace kube {

// Empty texts are not checked. kInvalidArgument: no certificate, no key, or a key of another certificate.
Status CheckPem(const std::string& ca_pem, const std::string& cert_pem, const std::string& key_pem);

}  // namespace kube
