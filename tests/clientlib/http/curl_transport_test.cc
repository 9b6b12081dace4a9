// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/curl_transport.h"

#include <functional>
#include <future>

#include "tests/clientlib/http/transport_fixture.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::CertifiedKey;
using testing::Event;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadAll;
using testing::TestConnection;
using testing::TestRequest;
using testing::TestServer;

class CurlTransportTest : public testing::TransportFixture {};

TEST_F(CurlTransportTest, DestroyedStreamClosesItsTransfer) {
  Event closed;
  auto server = Serve([&](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.AwaitClosing();
    closed.Set();
  });
  auto transport = Connect(OptionsFor(*server));
  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});
  ASSERT_TRUE(opened);

  opened->stream.reset();

  EXPECT_TRUE(closed.Wait());
}

TEST_F(CurlTransportTest, A3ReloadUsesTheNewCertificateAndKeepsRunningStreams) {
  Event go_on;
  const CertifiedKey server_key = ca_.Issue();
  TestServer server({.cert_pem = server_key.cert_pem, .key_pem = server_key.key_pem, .client_ca_pem = ca_.cert_pem()},
                    [&](const TestRequest& request, TestConnection& connection) {
                      if (request.target != "/stream") return connection.Respond(200);
                      connection.StartChunks();
                      connection.Chunk("before,");
                      EXPECT_TRUE(go_on.Wait());
                      connection.Chunk("after");
                      connection.EndChunks();
                    });
  TransportOptions options = OptionsFor(server);
  const CertifiedKey first = ca_.Issue();
  options.cert_pem = first.cert_pem;
  options.key_pem = first.key_pem;
  auto transport = Connect(options);
  Result<StreamResponse> opened = transport->Open({.target = "/stream", .pool = HttpPool::kWatch}, {});
  ASSERT_TRUE(opened) << opened.error().message();
  const int before = server.connections();

  const CertifiedKey second = ca_.Issue();
  options.cert_pem = second.cert_pem;
  options.key_pem = second.key_pem;
  ASSERT_TRUE(transport->Reload(options));
  ASSERT_TRUE(transport->Send({.target = "/", .pool = HttpPool::kWatch}, {}));

  EXPECT_EQ(server.connections(), before + 1);
  go_on.Set();
  EXPECT_EQ(ReadAll(*opened->stream, Soon()), "before,after");
}

TEST_F(CurlTransportTest, A3ReloadWithBadOptionsChangesNothing) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200); });
  auto transport = Connect(OptionsFor(*server));
  TransportOptions options = OptionsFor(*server);
  options.ca_pem = "half a file";

  EXPECT_EQ(transport->Reload(options).error().code(), ErrorCode::kInvalidArgument);

  EXPECT_TRUE(transport->Send({.target = "/"}, {}));
}

TEST_F(CurlTransportTest, DestroyingTheTransportEndsItsExchanges) {
  Event arrived;
  auto server = Serve([&](const TestRequest& request, TestConnection& connection) {
    if (request.target == "/stream") connection.StartChunks();
    if (request.target == "/silent") arrived.Set();
    connection.AwaitClosing();
  });
  auto transport = Connect(OptionsFor(*server));
  Result<StreamResponse> opened = transport->Open({.target = "/stream"}, {});
  ASSERT_TRUE(opened);
  auto sending =
      std::async(std::launch::async, [&, t = transport.get()] { return t->Send({.target = "/silent"}, {}); });
  ASSERT_TRUE(arrived.Wait());

  transport.reset();

  EXPECT_EQ(sending.get().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(opened->stream->Read(Soon(), {}).error().code(), ErrorCode::kCancelled);
}

TEST_F(CurlTransportTest, A5ContradictoryOptionsAreRefused) {
  const CertifiedKey one = ca_.Issue();
  const CertifiedKey two = ca_.Issue();
  const TransportOptions good{.server = "https://k8s:6443", .ca_pem = ca_.cert_pem()};
  struct Case {
    const char* want;
    std::function<void(TransportOptions&)> spoil;
  };
  for (const Case& c : {
           Case{"has no http or https scheme", [](auto& o) { o.server = "k8s:6443"; }},
           Case{"contains a user name", [](auto& o) { o.server = "https://me:s3cret@k8s"; }},
           Case{"ends with a slash", [](auto& o) { o.server = "https://k8s/"; }},
           Case{"given together", [&](auto& o) { o.cert_pem = one.cert_pem; }},
           Case{"given together", [&](auto& o) { o.key_pem = one.key_pem; }},
           Case{"but insecure_skip_verify is set", [](auto& o) { o.insecure_skip_verify = true; }},
           Case{"CA is not a PEM certificate", [](auto& o) { o.ca_pem = "s3cret"; }},
           Case{"client certificate is not a PEM", [](auto& o) { o.cert_pem = o.key_pem = "s3cret"; }},
           Case{"client key is not a PEM", [&](auto& o) { o.cert_pem = one.cert_pem, o.key_pem = "s3cret"; }},
           Case{"does not belong", [&](auto& o) { o.cert_pem = one.cert_pem, o.key_pem = two.key_pem; }},
           Case{"at least one connection", [](auto& o) { o.lease_connections = 0; }},
           Case{"must be positive", [](auto& o) { o.connect_timeout = 0s; }},
       }) {
    TransportOptions options = good;
    c.spoil(options);
    const auto made = CurlTransport::Create(options, clock_);
    ASSERT_FALSE(made) << c.want;
    EXPECT_EQ(made.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().message(), HasSubstr(c.want));
    EXPECT_THAT(made.error().message(), Not(HasSubstr("s3cret")));
  }
}

TEST_F(CurlTransportTest, RequestsThatWouldSmuggleAreRefused) {
  auto transport = Connect({.server = "https://127.0.0.1:1", .ca_pem = ca_.cert_pem()});
  for (const HttpRequest& request : {
           HttpRequest{.target = ""},
           HttpRequest{.target = "api"},
           HttpRequest{.target = "/a b"},
           HttpRequest{.target = "/a\r\nX: y"},
           HttpRequest{.method = "", .target = "/"},
           HttpRequest{.method = "GET /x HTTP/1.1\r\n", .target = "/"},
           HttpRequest{.target = "/", .headers = {{"X", "s3cret\r\nY: z"}}},
           HttpRequest{.target = "/", .headers = {{"X: y\r\nZ", "s3cret"}}},
           HttpRequest{.target = "/", .headers = {{"", "x"}}},
       }) {
    const Result<HttpResponse> got = transport->Send(request, {});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::kInvalidArgument) << got.error().message();
    EXPECT_THAT(got.error().message(), Not(HasSubstr("s3cret")));
  }
}

}  // namespace
}  // namespace kube
