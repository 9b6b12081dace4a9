// SPDX-License-Identifier: Apache-2.0
// Pods that a namespace refuses.
#include "tests/contract/pods.h"

namespace kube::contract {
namespace {

class PodSecurity : public PodContract {
 protected:
  void Enforce(const std::string& level) {
    const Answer labelled = Merge("/api/v1/namespaces/" + ns(),
                                  R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":)" + level + "}}}");
    ASSERT_EQ(labelled.status, 200) << labelled.http.body;
    // What admits pods hears of the label a little later.
    const int wanted = level == R"("restricted")" ? 403 : 201;
    const TimePoint until = clock().Now() + kLimit;
    while (TryPod("probe", "{}", "?dryRun=All").status != wanted) ASSERT_LT(clock().Now(), until);
  }
};

constexpr char kGood[] =
    R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
    "containers":[{"name":"c","image":"i","securityContext":{"allowPrivilegeEscalation":false,
    "capabilities":{"drop":["ALL"]}}}]})";

TEST_F(PodSecurity, RestrictedRefusesWhatSaysNothing) {
  Enforce(R"("restricted")");

  EXPECT_TRUE(Refused(
      TryPod("p", "{}"), 403, "Forbidden",
      R"(pods "p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false )"
      R"((container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
      R"((container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true )"
      R"((pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile )"
      R"((pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"))"));
  EXPECT_EQ(Get(Pods() + "/p").status, 404);
}

TEST_F(PodSecurity, RestrictedTakesWhatIsCareful) {
  Enforce(R"("restricted")");

  EXPECT_EQ(TryPod("p", kGood).status, 201);
}

TEST_F(PodSecurity, RefusesUntilTheLabelIsGone) {
  Enforce(R"("restricted")");
  EXPECT_EQ(TryPod("p", "{}").status, 403);

  Enforce("null");

  EXPECT_EQ(TryPod("p", "{}").status, 201);
}

TEST_F(PodSecurity, RestrictedNamesAllThatIsWrong) {
  Enforce(R"("restricted")");

  EXPECT_TRUE(Refused(
      TryPod("p", R"({"hostNetwork":true,"securityContext":{"runAsUser":0,"runAsNonRoot":false,
          "seccompProfile":{"type":"Unconfined"}},"volumes":[{"name":"v","hostPath":{"path":"/"}},
          {"name":"w","nfs":{"path":"/","server":"s"}},{"name":"x","emptyDir":{}}],
          "initContainers":[{"name":"a","image":"i","securityContext":{"privileged":true}}],
          "containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"hostPort":80}],
          "securityContext":{"runAsUser":0,"allowPrivilegeEscalation":false,
          "capabilities":{"drop":["ALL"],"add":["SYS_CHROOT"]}}}]})"),
      403, "Forbidden",
      R"(pods "p" is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true), )"
      R"(hostPort (container "c" uses hostPort 80), )"
      R"(privileged (container "a" must not set securityContext.privileged=true), allowPrivilegeEscalation != false )"
      R"((container "a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities )"
      R"((container "a" must set securityContext.capabilities.drop=["ALL"]; container "c" must not include )"
      R"("SYS_CHROOT" in securityContext.capabilities.add), restricted volume types (volumes "v", "w" use )"
      R"(restricted volume types "hostPath", "nfs"), runAsNonRoot != true )"
      R"((pod must not set securityContext.runAsNonRoot=false), runAsUser=0 )"
      R"((pod and container "c" must not set runAsUser=0), seccompProfile )"
      R"((pod must not set securityContext.seccompProfile.type to "Unconfined"))"));
}

TEST_F(PodSecurity, TakesTemplatesOfWhatItRefuses) {
  Enforce(R"("restricted")");

  EXPECT_EQ(Post(Collection("/apis/batch/v1", "jobs"), R"({"metadata":{"name":"j"},"spec":{"suspend":true,
      "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})")
                .status,
            201);
}

}  // namespace
}  // namespace kube::contract
