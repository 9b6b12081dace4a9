// SPDX-License-Identifier: Apache-2.0
// What goes over the wire, and what an error says.
#include <atomic>
#include <string>

#include "tests/clientlib/http/transport_fixture.h"

namespace kube {
namespace {

using testing::CertifiedKey;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestCa;
using testing::TestConnection;
using testing::TestRequest;
using testing::TestServer;

class CurlTransferTest : public testing::TransportFixture {};

TEST_F(CurlTransferTest, SendsMethodTargetHeadersAndBody) {
  TestRequest seen;
  auto server = Serve([&](const TestRequest& request, TestConnection& connection) {
    seen = request;
    connection.Respond(201, "made", {{"X-Answer", " yes "}});
  });
  auto transport = Connect(OptionsFor(*server));

  Result<HttpResponse> got =
      transport->Send({.method = "PATCH",
                       .target = "/api/v1/pods?limit=1&x=%2F",
                       .headers = {{"Content-Type", "application/apply-patch+yaml"}, {"X-Empty", ""}},
                       .body = "{\"a\":1}"},
                      {});

  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->status, 201);
  EXPECT_EQ(got->body, "made");
  EXPECT_EQ(got->Header("x-answer"), "yes");
  EXPECT_EQ(got->Header("x-none"), "");
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.target, "/api/v1/pods?limit=1&x=%2F");
  EXPECT_EQ(seen.Header("content-type"), "application/apply-patch+yaml");
  EXPECT_EQ(seen.Header("expect"), "");
  EXPECT_EQ(seen.body, "{\"a\":1}");
}

TEST_F(CurlTransferTest, NothingOfARequestStaysForTheNextOnTheSameConnection) {
  TestRequest seen;
  auto server = Serve([&](const TestRequest& request, TestConnection& connection) {
    seen = request;
    connection.Respond(200, request.method == "HEAD" ? "" : "ok");
  });
  auto transport = Connect(OptionsFor(*server));

  for (const std::string method : {"POST", "GET", "PUT", "HEAD", "DELETE", "GET", "PATCH", "DELETE", "POST", "GET"}) {
    const bool is_write = method == "POST" || method == "PUT" || method == "PATCH";
    HttpRequest request{.method = method, .target = "/"};
    if (is_write) request.body = "body";
    if (is_write) request.headers = {{"Content-Type", "text/x-" + method}, {"X-Write", "yes"}};

    ASSERT_TRUE(transport->Send(request, {})) << method;

    EXPECT_EQ(seen.method, method);
    EXPECT_EQ(seen.body, request.body) << method;
    EXPECT_EQ(seen.Header("content-type"), is_write ? "text/x-" + method : "");
    EXPECT_EQ(seen.Header("x-write"), is_write ? "yes" : "") << method;
  }
  EXPECT_EQ(server->connections(), 1);
  EXPECT_EQ(transport->connections_opened(), 1);
}

TEST_F(CurlTransferTest, A5RedirectsAreNotFollowed) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(302, "", {{"Location", "/other"}}); });
  auto transport = Connect(OptionsFor(*server));

  Result<HttpResponse> got = transport->Send({.target = "/"}, {});

  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 302);
}

TEST_F(CurlTransferTest, BrokenConnectionIsUnavailableAtAnyByte) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{7}, answer.size() - 7, answer.size() - 5, answer.size() - 1}) {
    auto server = Serve([&](const TestRequest&, TestConnection& connection) {
      connection.Raw(std::string_view(answer).substr(0, bytes));
      connection.Close();
    });
    auto transport = Connect(OptionsFor(*server));

    Result<HttpResponse> got = transport->Send({.target = "/"}, {});

    ASSERT_FALSE(got) << bytes;
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable) << bytes;
    EXPECT_EQ(got.error().reason(), kConnectionLost) << bytes;
    EXPECT_THAT(got.error().message(), HasSubstr("broke before the answer was complete")) << bytes;
  }
}

TEST_F(CurlTransferTest, RefusedConnectionNamesTheServer) {
  const testing::ClosedPort closed;
  const std::string url = "https://127.0.0.1:" + std::to_string(closed.port());
  auto transport = Connect({.server = url, .ca_pem = ca_.cert_pem()});

  Result<HttpResponse> got = transport->Send({.target = "/"}, {});

  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(got.error().reason(), "");
  EXPECT_THAT(got.error().message(), ::testing::StartsWith("connect to " + url + ": failed to connect"));
}

TEST_F(CurlTransferTest, UntrustedCertificateIsNamedAsSuch) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200); });
  TransportOptions options = OptionsFor(*server);
  options.ca_pem = TestCa("another CA").cert_pem();
  auto transport = Connect(options);

  Result<HttpResponse> got = transport->Send({.target = "/"}, {});

  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message(), HasSubstr("connect to " + server->url() +
                                               ": the server's certificate is not trusted by the configured CA"));
}

TEST_F(CurlTransferTest, A5CertificateMustBeForTheHostOrTheGivenName) {
  const CertifiedKey key = ca_.Issue({.dns_names = {"api.example"}, .ip_addresses = {}});
  std::string host;
  TestServer server({.cert_pem = key.cert_pem, .key_pem = key.key_pem},
                    [&](const TestRequest& request, TestConnection& connection) {
                      host = request.Header("host");
                      connection.Respond(200);
                    });

  Result<HttpResponse> by_address = Connect(OptionsFor(server))->Send({.target = "/"}, {});
  TransportOptions named = OptionsFor(server);
  named.tls_server_name = "api.example";
  Result<HttpResponse> by_name = Connect(named)->Send({.target = "/"}, {});

  ASSERT_FALSE(by_address);
  EXPECT_THAT(by_address.error().message(), HasSubstr("certificate is for another name"));
  ASSERT_TRUE(by_name) << by_name.error().message();
  EXPECT_EQ("https://" + host, server.url());
}

TEST_F(CurlTransferTest, A5VerificationCanBeSwitchedOff) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200); });
  auto transport = Connect({.server = server->url(), .insecure_skip_verify = true});

  EXPECT_TRUE(transport->Send({.target = "/"}, {}));
}

TEST_F(CurlTransferTest, ClientCertificateIsPresented) {
  const CertifiedKey server_key = ca_.Issue();
  const CertifiedKey client_key = ca_.Issue({.common_name = "client"});
  TestServer server({.cert_pem = server_key.cert_pem, .key_pem = server_key.key_pem, .client_ca_pem = ca_.cert_pem()},
                    [](const TestRequest&, TestConnection& c) { c.Respond(200); });
  TransportOptions with = OptionsFor(server);
  with.cert_pem = client_key.cert_pem;
  with.key_pem = client_key.key_pem;

  EXPECT_TRUE(Connect(with)->Send({.target = "/"}, {}));
  Result<HttpResponse> without = Connect(OptionsFor(server))->Send({.target = "/"}, {});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(without.error().message(), HasSubstr("certificate required"));
}

TEST_F(CurlTransferTest, GzipIsDecodedIfAskedFor) {
  // printf hello | gzip -n
  const std::string zipped("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25);
  auto server = Serve([&](const TestRequest& request, TestConnection& connection) {
    const bool accepts = request.Header("accept-encoding") == "gzip";
    connection.Respond(200, accepts ? zipped : "plain", {{"Content-Encoding", accepts ? "gzip" : "identity"}});
  });
  auto transport = Connect(OptionsFor(*server));

  EXPECT_EQ(transport->Send({.target = "/", .headers = {{"Accept-Encoding", "gzip"}}}, {})->body, "hello");
  EXPECT_EQ(transport->Send({.target = "/"}, {})->body, "plain");
}

TEST_F(CurlTransferTest, H1ReadIsRepeatedOnAFreshConnectionButAWriteIsNot) {
  for (const std::string method : {"GET", "POST", "PATCH"}) {
    std::atomic<int> requests{0};
    auto server = Serve([&](const TestRequest&, TestConnection& connection) {
      // The kept connection turns out dead when the second request comes.
      if (++requests == 2) return connection.Close();
      connection.Respond(200);
    });
    auto transport = Connect(OptionsFor(*server));
    ASSERT_TRUE(transport->Send({.target = "/"}, {}));

    Result<HttpResponse> got = transport->Send({.method = method, .target = "/"}, {});

    EXPECT_EQ(got.ok(), method == "GET") << method;
    if (!got) {
      EXPECT_EQ(got.error().reason(), kConnectionLost);
    }
    EXPECT_EQ(requests, method == "GET" ? 3 : 2) << method;
  }
}

TEST_F(CurlTransferTest, A5ProxyIsAskedUnlessTheHostIsExempt) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200); });
  std::string method, target;
  TestServer proxy({}, [&](const TestRequest& request, TestConnection& connection) {
    method = request.method;
    target = request.target;
    connection.Respond(403);
  });
  TransportOptions options = OptionsFor(*server);
  options.proxy_url = "http://me:s3cret@127.0.0.1:" + std::to_string(proxy.port());

  Result<HttpResponse> got = Connect(options)->Send({.target = "/"}, {});
  options.no_proxy = "127.0.0.1";
  Result<HttpResponse> exempt = Connect(options)->Send({.target = "/"}, {});

  EXPECT_EQ(method, "CONNECT");
  EXPECT_EQ("https://" + target, server->url());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message(), Not(HasSubstr("s3cret")));
  EXPECT_TRUE(exempt);
}

TEST_F(CurlTransferTest, ErrorsHoldNoCredentials) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Close(); });
  auto transport = Connect(OptionsFor(*server));

  Result<HttpResponse> got = transport->Send({.target = "/", .headers = {{"Authorization", "Bearer s3cret"}}}, {});

  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message(), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace kube
