// SPDX-License-Identifier: Apache-2.0
// Checks certificates and keys in PEM text: whether they are valid, and until when.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"

namespace kube {

// Base64 (RFC 4648) with padding. White space is skipped, because YAML may fold long values. Error kInvalidArgument;
// the message contains none of the text.
Result<std::string> DecodeBase64(std::string_view text);
std::string EncodeBase64(std::string_view bytes);

// Errors of all: kInvalidArgument; the message contains none of the text.
Status CheckCaCertificate(const std::string& ca_pem);
// An encrypted key is an error: there is nobody to enter its passphrase.
Status CheckClientCertificate(const std::string& cert_pem, const std::string& key_pem);
// Of the first certificate.
Result<WallTime> CertificateExpiry(const std::string& cert_pem);

}  // namespace kube
