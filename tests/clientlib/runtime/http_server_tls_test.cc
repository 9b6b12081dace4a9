// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "clientlib/auth/certificate_pair.h"
#include "clientlib/auth/tls_material.h"
#include "clientlib/http/curl_transport.h"
#include "clientlib/runtime/http_server.h"
#include "tests/clientlib/runtime/raw_connection.h"
#include "tests/kit/certificates.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::TestCa;

CertificatePair Issued(const TestCa& ca) {
  const testing::CertifiedKey own = ca.Issue();
  return {own.cert_pem, own.key_pem};
}

Result<std::unique_ptr<HttpServer>> StartTls(HttpServer::CertificateSource certificates, HttpServerLimits limits = {}) {
  return HttpServer::Start("127.0.0.1:0",
                           {{"/metrics",
                             [](const ServedRequest& request) {
                               return HttpReply{.status = request.authorization == "Bearer good" ? 200 : 401,
                                                .body = request.authorization};
                             }}},
                           limits, std::move(certificates));
}

Result<HttpResponse> Get(int port, const std::string& ca_pem, const std::string& token, int max_bytes = 0) {
  static const SystemClock clock;
  TransportOptions options;
  options.server = "https://localhost:" + std::to_string(port);
  options.ca_pem = ca_pem;
  Result<std::unique_ptr<CurlTransport>> made = CurlTransport::Create(options, clock);
  if (!made) return std::move(made).error();
  HttpRequest request;
  request.method = "GET";
  request.target = "/metrics";
  request.headers = {{"authorization", "Bearer " + token}};
  if (max_bytes > 0) request.headers.emplace_back("x-long", std::string(static_cast<std::size_t>(max_bytes), 'x'));
  request.timeout = 20s;
  return (*made)->Send(request, {});
}

TEST(HttpServerTls, AnswersAClientThatTrustsItsCertificate) {
  const TestCa ca;
  const auto server = StartTls([pair = Issued(ca)] { return pair; });
  ASSERT_TRUE(server) << server.error().message();

  const Result<HttpResponse> good = Get((*server)->port(), ca.cert_pem(), "good");
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->status, 200);
  EXPECT_EQ(good->body, "Bearer good");
  const Result<HttpResponse> bad = Get((*server)->port(), ca.cert_pem(), "bad");
  ASSERT_TRUE(bad) << bad.error().message();
  EXPECT_EQ(bad->status, 401);
  EXPECT_EQ(bad->Header("www-authenticate"), "Bearer");
}

TEST(HttpServerTls, IsNotTrustedWithAnother) {
  const auto server = StartTls([pair = Issued(TestCa())] { return pair; });
  ASSERT_TRUE(server) << server.error().message();

  EXPECT_FALSE(Get((*server)->port(), TestCa("another").cert_pem(), "good"));
}

TEST(HttpServerTls, ServesItsOwnCertificateToWhoTrustsIt) {
  const Result<CertificatePair> own = MakeSelfSigned("localhost");
  ASSERT_TRUE(own) << own.error().message();
  EXPECT_TRUE(CheckClientCertificate(own->cert_pem, own->key_pem));
  const auto server = StartTls([&] { return *own; });
  ASSERT_TRUE(server) << server.error().message();

  const Result<HttpResponse> answer = Get((*server)->port(), own->cert_pem, "good");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpServerTls, AnswersARequestThatItRefuses) {
  const TestCa ca;
  const auto server = StartTls([pair = Issued(ca)] { return pair; });
  ASSERT_TRUE(server) << server.error().message();

  const Result<HttpResponse> answer = Get((*server)->port(), ca.cert_pem(), "good", 10'000);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 431);
}

TEST(HttpServerTls, ClosesConnectionsThatDoNotShakeHands) {
  const TestCa ca;
  const auto server = StartTls([pair = Issued(ca)] { return pair; }, {.connections = 2, .time = 10min});
  ASSERT_TRUE(server) << server.error().message();
  std::vector<std::unique_ptr<testing::RawConnection>> idle;
  for (int i = 0; i < 4; ++i) idle.push_back(std::make_unique<testing::RawConnection>((*server)->port()));

  const Result<HttpResponse> answer = Get((*server)->port(), ca.cert_pem(), "good");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpServerTls, SaysAtTheStartWhyItCannotHaveACertificate) {
  const TestCa ca;
  const CertificatePair pair = Issued(ca), other = Issued(ca);
  const auto unread = StartTls([]() -> Result<CertificatePair> { return Error(ErrorCode::kNotFound, "no tls.crt"); });
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().message(), "serve TLS on 127.0.0.1:0: no tls.crt");
  for (const CertificatePair& wrong :
       {CertificatePair{"x", pair.key_pem}, {pair.cert_pem, "x"}, {pair.cert_pem, other.key_pem}}) {
    const auto server = StartTls([&] { return wrong; });
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(server.error().message(), HasSubstr("serve TLS on 127.0.0.1:0: not "));
  }
}

}  // namespace
}  // namespace kube
