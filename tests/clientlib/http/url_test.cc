// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(EscapePathSegment, LeavesOnlyUnreservedCharacters) {
  EXPECT_EQ(EscapePathSegment("my-pod.v1_x~0"), "my-pod.v1_x~0");
  EXPECT_EQ(EscapePathSegment("a/b?c#d%e f"), "a%2Fb%3Fc%23d%25e%20f");
  EXPECT_EQ(EscapePathSegment("\xc3\xa9\n"), "%C3%A9%0A");
  EXPECT_EQ(EscapePathSegment(""), "");
}

TEST(QueryBuilder, EscapesNamesAndValues) {
  EXPECT_EQ(QueryBuilder("/api/v1/pods")
                .Add("limit", 500)
                .Add("watch", true)
                .Add("labelSelector", "app in (a,b),x=1&2+3")
                .Add("fieldManager", "")
                .target(),
            "/api/v1/pods?limit=500&watch=true&labelSelector=app%20in%20%28a%2Cb%29%2Cx%3D1%262%2B3&fieldManager=");
}

TEST(QueryBuilder, WithoutParametersThereIsNoQuestionMark) {
  EXPECT_EQ(QueryBuilder("/api/v1/pods").target(), "/api/v1/pods");
}

TEST(ParseServerUrl, SplitsIntoParts) {
  struct Case {
    const char* url;
    const char *scheme, *host, *port, *path;
  };
  for (const Case& c : {Case{"https://k8s.example:6443", "https", "k8s.example", "6443", ""},
                        Case{"https://k8s.example", "https", "k8s.example", "443", ""},
                        Case{"http://127.0.0.1/", "http", "127.0.0.1", "80", ""},
                        Case{"https://[::1]:8443/k8s/c-1//", "https", "[::1]", "8443", "/k8s/c-1"},
                        Case{"https://[fd00::2]", "https", "[fd00::2]", "443", ""}}) {
    const Result<ServerUrl> got = ParseServerUrl(c.url);
    ASSERT_TRUE(got) << c.url << ": " << got.error().message();
    EXPECT_EQ(got->scheme, c.scheme) << c.url;
    EXPECT_EQ(got->host, c.host) << c.url;
    EXPECT_EQ(got->port, c.port) << c.url;
    EXPECT_EQ(got->path, c.path) << c.url;
  }
}

TEST(ParseServerUrl, RefusesWhatIsNoServer) {
  for (const char* url :
       {"", "k8s.example:6443", "ftp://x", "https://", "https://:6443", "https://[]:1", "https://[::1",
        "https://x:", "https://x:abc", "https://x:123456", "https://x:65536", "https://[::1]x", "https://x?a=b",
        "https://x/#f", "https://a b", "https://x\n", "https://me:secret@x"}) {
    const Result<ServerUrl> got = ParseServerUrl(url);
    ASSERT_FALSE(got) << url;
    EXPECT_EQ(got.error().code(), ErrorCode::kInvalidArgument) << url;
    EXPECT_THAT(got.error().message(), ::testing::Not(::testing::HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace kube
