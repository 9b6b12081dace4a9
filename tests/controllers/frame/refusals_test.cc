// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/refusals.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

TEST(Refusals, AnAdmissionCheckRefusesWithManyCodes) {
  struct Case {
    ErrorCode code;
    const char* text;
    bool is_by_admission;
  };
  const Case kCases[] = {
      {ErrorCode::kForbidden, R"(pods "a" is forbidden: exceeded quota: team)", true},
      {ErrorCode::kForbidden, R"(pods "a" is forbidden: User "grus" cannot create resource "pods")", false},
      {ErrorCode::kForbidden, "unable to create new content in namespace a because it is being terminated", false},
      {ErrorCode::kInvalidArgument, R"(admission webhook "x.example.com" denied the request: no)", true},
      {ErrorCode::kUnavailable, R"(Internal error occurred: failed calling webhook "x.example.com": timeout)", true},
      {ErrorCode::kInvalidArgument, "strict decoding error", false},
      {ErrorCode::kInvalid, R"(Pod "a" is invalid)", false},
      {ErrorCode::kUnavailable, "etcdserver: leader changed", false},
  };
  for (const Case& c : kCases) EXPECT_EQ(IsByAdmission(Error(c.code, c.text)), c.is_by_admission) << c.text;
}

TEST(Refusals, AQuotaRefusesForWantOfStatementOrOfRoom) {
  const auto words = [](const char* text) {
    return QuotaRefusalOf(Error(ErrorCode::kForbidden, std::string("pods \"a\" is forbidden: ") + text));
  };
  EXPECT_TRUE(IsForWantOfStatement(words("failed quota: team: must specify limits.cpu for: worker")));
  EXPECT_FALSE(IsForWantOfStatement(words("exceeded quota: team, requested: limits.cpu=2, used: limits.cpu=7")));
  EXPECT_FALSE(IsForWantOfStatement(words("status unknown for quota: team, resources: limits.cpu")));
  EXPECT_FALSE(IsForWantOfStatement(words("violates PodSecurity")));
}

}  // namespace
}  // namespace grus
