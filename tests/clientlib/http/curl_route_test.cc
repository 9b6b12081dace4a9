// SPDX-License-Identifier: Apache-2.0
// The way to the server: proxies, versions of TLS, and certificates whose time has not come or is over.
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/clientlib/http/http2_fixture.h"
#include "tests/kit/loopback.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::CertifiedKey;
using testing::Fate;
using ::testing::HasSubstr;
using testing::TestCa;
using testing::TestConnection;
using testing::TestRequest;
using testing::TestServer;

// Refuses its first client (RFC 1928), and keeps the host and port that it was asked for.
class SocksProxy {
 public:
  SocksProxy() : listener_(testing::ListenOnLoopback(port_)), thread_([this] { Refuse(); }) {}
  ~SocksProxy() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  int port() const { return port_; }
  // Once the client has been refused: "localhost:443", or "4 bytes" if that was an address.
  std::string AwaitAsked() {
    thread_.join();
    thread_ = std::jthread([] {});
    return asked_;
  }

 private:
  void Refuse() {
    const int client = testing::AcceptFrom(listener_);
    if (client < 0) return;
    const auto take = [client](std::size_t size) {
      std::string bytes(size, '\0');
      recv(client, bytes.data(), size, MSG_WAITALL);
      return bytes;
    };
    const auto number = [&](std::size_t size) {
      int value = 0;
      for (const char c : take(size)) value = value * 256 + static_cast<unsigned char>(c);
      return value;
    };
    take(1);
    take(static_cast<std::size_t>(number(1)));  // Ways to log in.
    send(client, "\x05\x00", 2, MSG_NOSIGNAL);  // None is needed.
    const bool is_name = take(4).back() == '\x03';
    if (is_name) asked_ = take(static_cast<std::size_t>(number(1)));
    else asked_ = std::to_string(take(4).size()) + " bytes";
    asked_ += ":" + std::to_string(number(2));
    send(client, "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00", 10, MSG_NOSIGNAL);  // "Not allowed by ruleset".
    close(client);
  }

  int port_ = 0;
  const int listener_;
  std::string asked_;
  std::jthread thread_;  // Last: it uses the members above.
};

class CurlRouteTest : public testing::Http2Fixture {
 protected:
  // Carries CONNECT to a port of 127.0.0.1. Over TLS if there is a key.
  static std::unique_ptr<TestServer> Proxy(const CertifiedKey& key) {
    const auto carry = [](const TestRequest& request, TestConnection& connection) {
      if (request.method != "CONNECT") return connection.Respond(405);
      connection.Tunnel(std::stoi(request.target.substr(request.target.rfind(':') + 1)));
    };
    return std::make_unique<TestServer>(TestServer::Options{.cert_pem = key.cert_pem, .key_pem = key.key_pem}, carry);
  }
  Result<HttpResponse> Get(TransportOptions options) { return Connect(std::move(options))->Send({.target = "/x"}, {}); }
};

TEST_F(CurlRouteTest, A5ProxiesCarryHttp2ToTheServer) {
  StartServer([](const TestRequest&, int) { return Fate::kAnswer; });
  for (const bool is_https : {false, true}) {
    const auto proxy = Proxy(is_https ? ca_.Issue() : CertifiedKey());
    TransportOptions options = ThroughTheNetwork();
    options.proxy_url = proxy->url();

    const Result<HttpResponse> got = Get(options);

    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->body, "/x");
    EXPECT_EQ(proxy->connections(), 1);
  }
}

TEST_F(CurlRouteTest, A5AnHttpsProxyIsVerifiedAsTheServerIs) {
  StartServer([](const TestRequest&, int) { return Fate::kAnswer; });
  const auto proxy = Proxy(TestCa("another CA").Issue());
  TransportOptions options = ThroughTheNetwork();
  options.proxy_url = proxy->url();

  const Result<HttpResponse> refused = Get(options);
  options.ca_pem.clear();
  options.insecure_skip_verify = true;
  const Result<HttpResponse> unverified = Get(options);

  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("certificate"));
  EXPECT_TRUE(unverified);
}

TEST_F(CurlRouteTest, A5ASocksProxyLooksTheNameUp) {
  SocksProxy proxy;

  const Result<HttpResponse> got = Get({.server = "https://api.example:6443",
                                        .ca_pem = ca_.cert_pem(),
                                        .proxy_url = "socks5://127.0.0.1:" + std::to_string(proxy.port())});

  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(proxy.AwaitAsked(), "api.example:6443");
}

TEST_F(CurlRouteTest, A5AServerWithoutTls12IsRefused) {
  const CertifiedKey key = ca_.Issue();
  const auto get_from = [&](int newest_tls) {
    TestServer server({.cert_pem = key.cert_pem, .key_pem = key.key_pem, .newest_tls = newest_tls},
                      [](const TestRequest&, TestConnection& c) { c.Respond(200); });
    return Get(OptionsFor(server));
  };

  const Result<HttpResponse> tls11 = get_from(TLS1_1_VERSION);

  ASSERT_FALSE(tls11);
  EXPECT_EQ(tls11.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(tls11.error().message(), HasSubstr("protocol version"));
  EXPECT_TRUE(get_from(TLS1_2_VERSION));
}

TEST_F(CurlRouteTest, A5ACertificateThatIsOutOfDateIsNamedAsSuch) {
  struct Case {
    testing::CertificateRequest request;
    const char* says;
  };
  for (const Case& c : {Case{{.valid_from = -2h, .valid_for = -1h}, "has expired"},
                        Case{{.valid_from = 1h, .valid_for = 2h}, "is not yet valid"}}) {
    const CertifiedKey key = ca_.Issue(c.request);
    TestServer server({.cert_pem = key.cert_pem, .key_pem = key.key_pem},
                      [](const TestRequest&, TestConnection& connection) { connection.Respond(200); });

    const Result<HttpResponse> got = Get(OptionsFor(server));

    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
    EXPECT_THAT(got.error().message(), HasSubstr("the server's certificate is out of date"));
    EXPECT_THAT(got.error().message(), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace kube
