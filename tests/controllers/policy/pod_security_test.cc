// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_security.h"

#include <gtest/gtest.h>

#include "clientlib/model/json_writer.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;

Json Filled(const char* pod) {
  Json filled = *kube::ParseJson(pod);
  FillPodSecurity(filled);
  return filled;
}

TEST(PodSecurity, WhatATemplateLeavesOpenIsFilledIn) {
  EXPECT_EQ(kube::ToText(Filled(R"({"spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"b"}]}})")),
            kube::ToText(*kube::ParseJson(
                R"({"spec":{"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,
                      "capabilities":{"drop":["ALL"]}}}],
                    "initContainers":[{"name":"b","securityContext":{"allowPrivilegeEscalation":false,
                      "capabilities":{"drop":["ALL"]}}}],
                    "securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}},
                    "metadata":{"annotations":{"ai.centauruscloud.io/pod-security":"restricted"}}})")));
}

// Whoever reads the API server's refusal finds the field that the user wrote.
TEST(PodSecurity, WhatATemplateSaysStays) {
  const Json pod = Filled(R"({"spec":{"securityContext":{"runAsNonRoot":false,"runAsUser":7,
      "seccompProfile":{"type":"Unconfined"}},"containers":[{"name":"a","securityContext":{"privileged":true,
      "allowPrivilegeEscalation":true,"capabilities":{"add":["NET_BIND_SERVICE"],"drop":["KILL"]}}}]}})");
  EXPECT_EQ(*pod.At({"spec", "securityContext"}),
            *kube::ParseJson(R"({"runAsNonRoot":false,"runAsUser":7,"seccompProfile":{"type":"Unconfined"}})"));
  EXPECT_EQ(*pod.At({"spec", "containers"})->AsArray()->front().Find("securityContext"),
            *kube::ParseJson(R"({"privileged":true,"allowPrivilegeEscalation":true,
                                 "capabilities":{"add":["NET_BIND_SERVICE"],"drop":["KILL"]}})"));
}

TEST(PodSecurity, AddedCapabilitiesDoNotKeepTheRest) {
  const Json pod =
      Filled(R"({"spec":{"containers":[{"securityContext":{"capabilities":{"add":["NET_BIND_SERVICE"]}}}]}})");
  EXPECT_EQ(*pod.At({"spec", "containers"})->AsArray()->front().At({"securityContext", "capabilities"}),
            *kube::ParseJson(R"({"add":["NET_BIND_SERVICE"],"drop":["ALL"]})"));
}

TEST(PodSecurity, WhatIsMalformedIsLeftToTheApiServer) {
  for (const char* text :
       {R"("x")", "[]", R"({"spec":"x"})", R"({"spec":{"securityContext":"x"}})", R"({"spec":{"containers":"x"}})",
        R"({"spec":{"containers":["x"]}})", R"({"spec":{"containers":[{"securityContext":[]}]}})",
        R"({"spec":{"containers":[{"securityContext":{"capabilities":5}}]}})", R"({"metadata":"x"})",
        R"({"metadata":{"annotations":[]}})"}) {
    Json twice = Filled(text);
    const Json once = twice;
    FillPodSecurity(twice);
    EXPECT_EQ(twice, once) << text;
  }
}

TEST(PodSecurity, OnlyARefusalByTheStandardRestrictedIsOne) {
  const char kRestricted[] =
      "pods \"w\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false";
  EXPECT_TRUE(IsRefusedAsUnrestricted(Error(ErrorCode::kForbidden, kRestricted)));
  EXPECT_TRUE(IsRefusedAsUnrestricted(Error(ErrorCode::kForbidden, kRestricted).with("create Pod a/w")));
  EXPECT_FALSE(IsRefusedAsUnrestricted(Error(ErrorCode::kInvalid, kRestricted)));
  EXPECT_FALSE(IsRefusedAsUnrestricted(
      Error(ErrorCode::kForbidden, "pods \"w\" is forbidden: violates PodSecurity \"baseline:latest\": hostNetwork")));
  EXPECT_FALSE(IsRefusedAsUnrestricted(Error(ErrorCode::kForbidden, "exceeded quota: pods")));
}

}  // namespace
}  // namespace grus
