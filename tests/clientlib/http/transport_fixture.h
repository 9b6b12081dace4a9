// SPDX-License-Identifier: Apache-2.0
// A transport and a server that trusts it, over TLS.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "clientlib/http/curl_transport.h"
#include "tests/kit/certificates.h"
#include "tests/kit/event.h"
#include "tests/kit/test_server.h"

namespace kube::testing {

class TransportFixture : public ::testing::Test {
 protected:
  std::unique_ptr<TestServer> Serve(TestServer::Handler handler) {
    const CertifiedKey key = ca_.Issue();
    return std::make_unique<TestServer>(TestServer::Options{.cert_pem = key.cert_pem, .key_pem = key.key_pem},
                                        std::move(handler));
  }
  TransportOptions OptionsFor(const TestServer& server) const {
    return {.server = server.url(), .ca_pem = ca_.cert_pem()};
  }
  std::unique_ptr<CurlTransport> Connect(TransportOptions options) const {
    auto transport = CurlTransport::Create(std::move(options), clock_);
    EXPECT_TRUE(transport) << transport.error().message();
    return transport ? *std::move(transport) : nullptr;
  }
  TimePoint Soon() const { return clock_.Now() + std::chrono::seconds(20); }

  const TestCa ca_;
  const SystemClock clock_{};
};

// Everything the stream has to give until its end.
inline std::string ReadAll(ByteStream& stream, TimePoint until) {
  std::string all;
  while (true) {
    Result<std::string> bytes = stream.Read(until, {});
    if (!bytes) return all + "<" + bytes.error().message() + ">";
    if (bytes->empty()) return all;
    all += *bytes;
  }
}

}  // namespace kube::testing
