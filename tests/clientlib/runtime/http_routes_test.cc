// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_routes.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace kube {
namespace {

HttpHandler Saying(const std::string& text, HttpMethods methods = HttpMethods::kGet) {
  return {[text](const ServedRequest&) { return HttpReply{.body = text}; }, methods};
}

TEST(HttpRoutes, AnExactPathComesBeforeTheLongestPrefix) {
  const HttpRoutes routes({{"/inspect/", Saying("some")},
                           {"/inspect/pools/", Saying("pools")},
                           {"/inspect/all", Saying("all")},
                           {"/version", Saying("version")}});
  struct Case {
    std::string path, want;
  };
  for (const Case& c : {
           Case{"/version", "version"},
           Case{"/inspect/", "some"},
           Case{"/inspect/node-1", "some"},
           Case{"/inspect/all", "all"},
           Case{"/inspect/all/x", "some"},
           Case{"/inspect/pools", "some"},
           Case{"/inspect/pools/a100", "pools"},
           Case{"/inspect//", "some"},
           Case{"/inspect", ""},
           Case{"/version/", ""},
           Case{"/version/x", ""},
           Case{"/", ""},
           Case{"*", ""},
           Case{"", ""},
       }) {
    const HttpHandler* found = routes.Find(c.path);
    EXPECT_EQ(found == nullptr ? "" : AnswerOf(*found, {}).body, c.want) << c.path;
  }
  EXPECT_EQ(HttpRoutes({}).Find("/"), nullptr);
}

TEST(HttpRoutes, ASlashAloneTakesWhatNobodyElseTakes) {
  const HttpRoutes routes({{"/", Saying("rest")}, {"/a", Saying("a")}});
  EXPECT_EQ(AnswerOf(*routes.Find("/b/c"), {}).body, "rest");
  EXPECT_EQ(AnswerOf(*routes.Find("/a"), {}).body, "a");
  EXPECT_EQ(routes.Find("*"), nullptr);
}

TEST(HttpRoutes, AllowNamesTheMethodsThatAreTaken) {
  EXPECT_EQ(AllowedMethods(HttpMethods::kGet), "GET, HEAD");
  EXPECT_EQ(AllowedMethods(HttpMethods::kPost), "POST");
  EXPECT_EQ(AllowedMethods(HttpMethods::kGetAndPost), "GET, HEAD, POST");
}

TEST(HttpRoutes, AnExceptionIsAnAnswer) {
  const HttpHandler throwing = [](const ServedRequest&) -> HttpReply { throw std::runtime_error("a bug"); };
  const HttpReply reply = AnswerOf(throwing, {});
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body, "exception: a bug\n");
}

}  // namespace
}  // namespace kube
