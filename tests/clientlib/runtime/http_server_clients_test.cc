// SPDX-License-Identifier: Apache-2.0
// Clients' certificates: whose are accepted, and what is read anew while the server runs.
#include <gmock/gmock.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <atomic>
#include <optional>

#include "clientlib/http/curl_transport.h"
#include "clientlib/runtime/http_server.h"
#include "clientlib/runtime/http_server_tls.h"
#include "tests/clientlib/runtime/raw_connection.h"
#include "tests/kit/certificates.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::CertificateRequest;
using testing::CertifiedKey;
using ::testing::HasSubstr;
using testing::TestCa;
using Instant = std::chrono::steady_clock::time_point;

constexpr std::size_t kLimit = 4UL << 20;

CertificatePair PairOf(const CertifiedKey& own) { return {own.cert_pem, own.key_pem}; }

class HttpServerClients : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> names = {}) {
    const auto echo = [this](const ServedRequest& request) {
      ++calls_;
      return HttpReply{.body = request.body};
    };
    auto started = HttpServer::Start("127.0.0.1:0", {{"/echo", {echo, HttpMethods::kPost}}},
                                     {.body_bytes = kLimit, .threads = 2}, [own = PairOf(own_.Issue())] { return own; },
                                     {.ca = [ca = clients_.cert_pem()] { return ca; }, .names = std::move(names)});
    ASSERT_TRUE(started) << started.error().message();
    server_ = *std::move(started);
  }

  // Status and body of the answer, or the error.
  Result<HttpResponse> Post(const CertifiedKey& client, std::string body = "{}") {
    static const SystemClock clock;
    TransportOptions options;
    options.server = "https://localhost:" + std::to_string(server_->port());
    options.ca_pem = own_.cert_pem();
    options.cert_pem = client.cert_pem;
    options.key_pem = client.key_pem;
    Result<std::unique_ptr<CurlTransport>> made = CurlTransport::Create(options, clock);
    if (!made) return std::move(made).error();
    HttpRequest request;
    request.method = "POST";
    request.target = "/echo";
    request.body = std::move(body);
    request.timeout = 20s;
    return (*made)->Send(request, {});
  }
  bool IsAccepted(const CertifiedKey& client) { return Post(client).ok(); }

  const TestCa own_{"own"}, clients_{"clients"};
  std::atomic<int> calls_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerClients, AnswersAClientWithACertificateOfTheirCa) {
  Start();
  const std::string body(3'000'000, 'x');  // So long that curl waits for "100 Continue".
  const Result<HttpResponse> answer = Post(clients_.Issue(), body);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(answer->body == body);
}

TEST_F(HttpServerClients, TheHandshakeFailsForAllOthers) {
  Start();
  struct Case {
    std::string what;
    CertifiedKey client;
  };
  for (const Case& c : {
           Case{"no certificate", {}},
           Case{"one of the server's CA", own_.Issue()},
           Case{"one of another CA of the same name", TestCa("clients").Issue()},
           Case{"one that has expired", clients_.Issue({.valid_from = -2h, .valid_for = -1h})},
           Case{"one that is not valid yet", clients_.Issue({.valid_from = 1h, .valid_for = 2h})},
       }) {
    EXPECT_FALSE(IsAccepted(c.client)) << c.what;
  }
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(IsAccepted(clients_.Issue()));
}

TEST_F(HttpServerClients, OnlyTheNamesThatAreAllowed) {
  Start({"system:kube-scheduler", "scheduler.example"});
  EXPECT_TRUE(IsAccepted(clients_.Issue({.common_name = "system:kube-scheduler"})));
  EXPECT_TRUE(IsAccepted(clients_.Issue({.common_name = "x", .dns_names = {"localhost", "scheduler.example"}})));
  const int accepted = calls_;
  EXPECT_FALSE(IsAccepted(clients_.Issue()));
  EXPECT_FALSE(IsAccepted(clients_.Issue({.common_name = "system:kube-scheduler2"})));
  EXPECT_FALSE(IsAccepted(clients_.Issue({.common_name = "x", .dns_names = {"*.example"}})));
  EXPECT_FALSE(IsAccepted(TestCa("x").Issue({.common_name = "system:kube-scheduler"})));
  EXPECT_EQ(calls_, accepted);
}

TEST_F(HttpServerClients, WhatIsNoHandshakeIsEnded) {
  Start();
  testing::RawConnection plain(server_->port());
  plain.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_THAT(plain.Read(), ::testing::Not(HasSubstr("HTTP/1.1")));
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(IsAccepted(clients_.Issue()));
}

TEST_F(HttpServerClients, SaysAtTheStartWhyItCannotKnowThem) {
  const auto own = [pair = PairOf(own_.Issue())] { return pair; };
  const auto started = [&](HttpServer::CertificateSource certificates, Result<std::string> ca) {
    auto server = HttpServer::Start("127.0.0.1:0", {}, {}, std::move(certificates), {.ca = [ca] { return ca; }});
    return server ? std::string() : server.error().message();
  };
  EXPECT_EQ(started({}, clients_.cert_pem()), "serve on 127.0.0.1:0: clients' certificates need TLS");
  EXPECT_EQ(started(own, Error(ErrorCode::kNotFound, "no ca.crt")),
            "serve TLS on 127.0.0.1:0: certificates of clients' CAs: no ca.crt");
  for (const std::string& bad : {std::string(), std::string("x"), own_.Issue().key_pem}) {
    EXPECT_THAT(started(own, bad), HasSubstr("serve TLS on 127.0.0.1:0: not certificates of clients' CAs in PEM"));
  }
  EXPECT_EQ(started(own, clients_.cert_pem()), "");
}

// --- a handshake in memory, so that time is ours

struct TlsEnd {
  TlsEnd(SSL_CTX* context, bool is_server) : ssl(SSL_new(context), SSL_free) {
    is_server ? SSL_set_accept_state(ssl.get()) : SSL_set_connect_state(ssl.get());
  }
  std::shared_ptr<SSL> ssl;
};

std::shared_ptr<SSL_CTX> ClientTls(const CertifiedKey& own) {
  std::shared_ptr<SSL_CTX> tls(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const auto memory = [](const std::string& pem) {
    return std::shared_ptr<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  };
  X509* certificate = PEM_read_bio_X509(memory(own.cert_pem).get(), nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(memory(own.key_pem).get(), nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(tls.get(), certificate);
  SSL_CTX_use_PrivateKey(tls.get(), key);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return tls;
}

struct Outcome {
  bool is_accepted = false;
  bool is_resumed = false;
  std::string own_serial{};  // Of the certificate that the server showed.
  std::shared_ptr<SSL_SESSION> session{};
};

Outcome ShakeHands(SSL_CTX* server_tls, SSL_CTX* client_tls, SSL_SESSION* resumed = nullptr) {
  const TlsEnd server(server_tls, true), client(client_tls, false);
  BIO *one = nullptr, *other = nullptr;
  BIO_new_bio_pair(&one, 1UL << 16, &other, 1UL << 16);
  SSL_set_bio(server.ssl.get(), one, one);
  SSL_set_bio(client.ssl.get(), other, other);
  if (resumed != nullptr) SSL_set_session(client.ssl.get(), resumed);
  for (int i = 0; i < 10; ++i) {
    SSL_do_handshake(client.ssl.get());
    SSL_do_handshake(server.ssl.get());
  }
  char byte = 0;
  SSL_read(client.ssl.get(), &byte, 1);  // A ticket would come here.
  Outcome out{.is_accepted = SSL_is_init_finished(server.ssl.get()) == 1,
              .is_resumed = SSL_session_reused(server.ssl.get()) == 1};
  out.session = {SSL_get1_session(client.ssl.get()), SSL_SESSION_free};
  if (X509* shown = SSL_get0_peer_certificate(client.ssl.get())) {
    const ASN1_INTEGER* serial = X509_get0_serialNumber(shown);
    out.own_serial.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                          static_cast<std::size_t>(ASN1_STRING_length(serial)));
  }
  return out;
}

class HttpServerTlsRenewal : public ::testing::Test {
 protected:
  Outcome Shake(const TestCa& client) {
    return ShakeHands(tls_.context()->native_handle(), ClientTls(client.Issue()).get());
  }

  const TestCa signer_{"own"}, first_{"first"}, second_{"second"};
  const Instant start_{};
  Result<CertificatePair> own_ = PairOf(signer_.Issue());
  Result<std::string> ca_ = first_.cert_pem();
  HttpServerTls tls_{[this] { return own_; }, {.ca = [this] { return ca_; }}};
};

TEST_F(HttpServerTlsRenewal, AnotherCaIsInUseAMinuteLater) {
  ASSERT_TRUE(tls_.Refresh(start_));
  ca_ = second_.cert_pem();
  EXPECT_TRUE(tls_.Refresh(start_ + 59s));
  EXPECT_TRUE(Shake(first_).is_accepted);
  EXPECT_FALSE(Shake(second_).is_accepted);

  EXPECT_TRUE(tls_.Refresh(start_ + 60s));

  EXPECT_FALSE(Shake(first_).is_accepted);
  EXPECT_TRUE(Shake(second_).is_accepted);
}

TEST_F(HttpServerTlsRenewal, TwoCasBesideEachOtherAreBothTrusted) {
  ca_ = first_.cert_pem() + second_.cert_pem();
  ASSERT_TRUE(tls_.Refresh(start_));
  EXPECT_TRUE(Shake(first_).is_accepted);
  EXPECT_TRUE(Shake(second_).is_accepted);
}

TEST_F(HttpServerTlsRenewal, ABadCaLeavesTheOneBeforeInUseAndTheCertificateIsRenewed) {
  ASSERT_TRUE(tls_.Refresh(start_));
  const std::string serial = Shake(first_).own_serial;
  Instant now = start_;
  for (const Result<std::string>& bad :
       {Result<std::string>("x"), Result<std::string>(Error(ErrorCode::kNotFound, "none"))}) {
    ca_ = bad;
    EXPECT_FALSE(tls_.Refresh(now += 1min));
    EXPECT_TRUE(Shake(first_).is_accepted);
    EXPECT_EQ(Shake(first_).own_serial, serial);
  }
  own_ = PairOf(signer_.Issue());
  EXPECT_FALSE(tls_.Refresh(now += 1min));
  EXPECT_TRUE(Shake(first_).is_accepted);
  EXPECT_NE(Shake(first_).own_serial, serial);
}

TEST_F(HttpServerTlsRenewal, ABadCertificateLeavesTheOneBeforeInUseAndTheCaIsRenewed) {
  ASSERT_TRUE(tls_.Refresh(start_));
  const std::string serial = Shake(first_).own_serial;
  own_ = CertificatePair{"x", "x"};
  ca_ = second_.cert_pem();
  EXPECT_FALSE(tls_.Refresh(start_ + 1min));
  EXPECT_FALSE(Shake(first_).is_accepted);
  EXPECT_TRUE(Shake(second_).is_accepted);
  EXPECT_EQ(Shake(second_).own_serial, serial);
}

TEST_F(HttpServerTlsRenewal, AnExpiredCertificateOfItsOwnIsServed) {
  own_ = PairOf(signer_.Issue({.valid_from = -2h, .valid_for = -1h}));
  ASSERT_TRUE(tls_.Refresh(start_));
  EXPECT_TRUE(Shake(first_).is_accepted);
}

// A session that is resumed would skip the check of the certificate.
TEST_F(HttpServerTlsRenewal, EveryConnectionShowsItsCertificate) {
  ASSERT_TRUE(tls_.Refresh(start_));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const std::shared_ptr<SSL_CTX> client = ClientTls(first_.Issue());
    SSL_CTX_set_min_proto_version(client.get(), version);
    SSL_CTX_set_max_proto_version(client.get(), version);
    const Outcome first = ShakeHands(tls_.context()->native_handle(), client.get());
    EXPECT_TRUE(first.is_accepted) << version;
    const Outcome again = ShakeHands(tls_.context()->native_handle(), client.get(), first.session.get());
    EXPECT_TRUE(again.is_accepted) << version;
    EXPECT_FALSE(again.is_resumed) << version;
  }
}

}  // namespace
}  // namespace kube
