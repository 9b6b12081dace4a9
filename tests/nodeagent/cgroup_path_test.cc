// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cgroup_path.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

const std::string kUid = "11111111-2222-3333-4444-555555555555", kOther = "99999999-8888-7777-6666-555555555555";
const std::string kContainer(64, 'a'), kInner(64, 'b');

TEST(CgroupPath, NamesPodAndContainerOfEachRecordedShape) {
  struct Case {
    const char *shape, *source, *cgroups, *pod_uid, *container_id;
  };
  const Case cases[] = {
      {"containerd, systemd, burstable, v1, other controllers at the root",
       "github.com/falcosecurity/falco/issues/1568",
       "6:rdma:/\n"
       "5:cpu,cpuacct:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod42d4123d_ae8b_4941_"
       "aead_64741a830402.slice/cri-containerd-790a0254dc76bfdbc6e218d1d3303585376a65eca0e4fc36bf7b4b9aa"
       "ad39706.scope\n",
       "42d4123d-ae8b-4941-aead-64741a830402", "790a0254dc76bfdbc6e218d1d3303585376a65eca0e4fc36bf7b4b9aaad39706"},
      {"containerd, systemd, guaranteed, v1", "github.com/tkestack/vcuda-controller/issues/19",
       "12:hugetlb:/kubepods.slice/kubepods-pod019c1fe8_0d92_4aa0_b61c_4df58bdde71c.slice/cri-containerd"
       "-9e073649debeec6d511391c9ec7627ee67ce3a3fb508b0fa0437a97f8e58ba98.scope\n",
       "019c1fe8-0d92-4aa0-b61c-4df58bdde71c", "9e073649debeec6d511391c9ec7627ee67ce3a3fb508b0fa0437a97f8e58ba98"},
      {"containerd, systemd, best effort, v2 (k3s)", "github.com/cryptnono/cryptnono/issues/47",
       "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod7fda01c4_0ece_403d_88b4_c371"
       "d66d132a.slice/cri-containerd-e58a24d4a722c99712cff74ef69d93311089584eb32617b3890e0dcb996133f1.s"
       "cope\n",
       "7fda01c4-0ece-403d-88b4-c371d66d132a", "e58a24d4a722c99712cff74ef69d93311089584eb32617b3890e0dcb996133f1"},
      {"containerd in cgroupfs under a kubelet of systemd, v1", "github.com/elastic/apm-agent-nodejs/issues/3550",
       "1:name=systemd:/system.slice/containerd.service/kubepods-burstable-podff49d0be_16b7_4a49_bb9e_8e"
       "c1f1f4e27f.slice:cri-containerd:0f99ad5f45163ed14ab8eaf92ed34bb4a631d007f8755a7d79be614bcb0df0ef"
       "\n",
       "ff49d0be-16b7-4a49-bb9e-8ec1f1f4e27f", "0f99ad5f45163ed14ab8eaf92ed34bb4a631d007f8755a7d79be614bcb0df0ef"},
      {"the same at the root of a hierarchy", "github.com/open-telemetry/opentelemetry-java/issues/4507",
       "11:perf_event:/kubepods-besteffort-pod0125ec2f_b64a_4868_8f5b_94b56cbab864.slice:cri-containerd:"
       "ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459\n",
       "0125ec2f-b64a-4868-8f5b-94b56cbab864", "ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459"},
      {"the same of a static pod", "github.com/kubernetes/kubernetes/issues/106514 (path below the mount)",
       "1:name=systemd:/system.slice/containerd.service/kubepods-burstable-pod36b6d6be73b1065af369b3985e"
       "dafa09.slice:cri-containerd:79fedb3bd23ca77c9d9ccb41909038316f713df22b54b7d942b71d3812e7c74e\n",
       "36b6d6be73b1065af369b3985edafa09", "79fedb3bd23ca77c9d9ccb41909038316f713df22b54b7d942b71d3812e7c74e"},
      {"containerd, systemd, static pod", "github.com/netdata/netdata/issues/4868 (path below the mount)",
       "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod187bff14cccb94f179e943eacce55b"
       "b3.slice/cri-containerd-c203a2647ef1ad78e990157c50331f3b6ef0b03336cf08535d6bf7faa5421415.scope\n",
       "187bff14cccb94f179e943eacce55bb3", "c203a2647ef1ad78e990157c50331f3b6ef0b03336cf08535d6bf7faa5421415"},
      {"CRI-O, systemd, burstable, v1, some controllers at the root", "github.com/opencontainers/runc/issues/4620",
       "13:freezer:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda5c1f8d5_1919_434d_add"
       "7_4afaafdaef89.slice/crio-5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c.scope"
       "\n"
       "11:files:/\n",
       "a5c1f8d5-1919-434d-add7-4afaafdaef89", "5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c"},
      {"the monitor of a container of CRI-O, in its pod", "github.com/sustainable-computing-io/kepler/issues/153",
       "1:name=systemd:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb4e8e0dc_caf3_4a43"
       "_bf50_f84ef5ef7a8f.slice/crio-conmon-927cffdca4f374600fe49a62bfd7f2e73ea6d37cdafb1bf8f89afb64d7e"
       "6c6a5.scope\n",
       "b4e8e0dc-caf3-4a43-bf50-f84ef5ef7a8f", "927cffdca4f374600fe49a62bfd7f2e73ea6d37cdafb1bf8f89afb64d7e6c6a5"},
      {"CRI-O in a node that is a Docker container (minikube)", "github.com/kubernetes/minikube/issues/11280",
       "1:name=systemd:/docker/d5d9ee5cf5ec9520d182418b737fb11f3aa6b739e91d7cb6ecd6786f6a2bcbd1/kubepods"
       ".slice/kubepods-besteffort.slice/kubepods-besteffort-pod43156c7c_e1b4_4833_a9d4_b70899e5ca0d.sli"
       "ce/crio-4529e5b06908151693bbfff1dfd47a3b7132dbe5c3bc347f38e9ccec4879fe79.scope\n",
       "43156c7c-e1b4-4833-a9d4-b70899e5ca0d", "4529e5b06908151693bbfff1dfd47a3b7132dbe5c3bc347f38e9ccec4879fe79"},
      {"Docker, systemd", "github.com/kontena/pharos-cluster/issues/440",
       "1:name=systemd:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod9692aa0e_748e_11"
       "e8_8dfa_76d458035df6.slice/docker-abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e91"
       "52.scope\n",
       "9692aa0e-748e-11e8-8dfa-76d458035df6", "abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e9152"},
      {"cgroupfs, best effort, v1", "github.com/Qard/container-info",
       "11:devices:/kubepods/besteffort/pod74c13223-5a00-11e9-b385-42010a80018d/34dc0b5e626f2c5c4c5170e3"
       "4b10e7654ce36f0fcd532739f4445baabea03376\n",
       "74c13223-5a00-11e9-b385-42010a80018d", "34dc0b5e626f2c5c4c5170e34b10e7654ce36f0fcd532739f4445baabea03376"},
      {"cgroupfs, burstable", "github.com/iovisor/kubectl-trace/pull/207",
       "0::/kubepods/burstable/pod31dd0274-bb43-4975-bdbc-7e10047a23f8/851c75dad6ad8ce6a5d9b9129a4eb1645"
       "f7c6e5ba8406b12d50377b665737072\n",
       "31dd0274-bb43-4975-bdbc-7e10047a23f8", "851c75dad6ad8ce6a5d9b9129a4eb1645f7c6e5ba8406b12d50377b665737072"},
      {"cgroupfs under a cgroup root of the kubelet's own",
       "github.com/elastic/apm-agent-nodejs, tests of its container info",
       "14:pids:/kubepods/kubepods/besteffort/pod0e886e9a-3879-45f9-b44d-86ef9df03224/244a65edefdffe3168"
       "5c42317c9054e71dc1193048cf9459e2a4dd35cbc1dba4\n",
       "0e886e9a-3879-45f9-b44d-86ef9df03224", "244a65edefdffe31685c42317c9054e71dc1193048cf9459e2a4dd35cbc1dba4"},
      {"kind, systemd, v2, from within its node", "github.com/containerd/nri/pull/227",
       "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-best"
       "effort-pod1e597579_417e_482f_bf65_5fe170c3aebd.slice/cri-containerd-a09bc17f5aa29b0dbdec9ede5f46"
       "cf1396d2405917ab02e6f1eb1019f388396e.scope\n",
       "1e597579-417e-482f-bf65-5fe170c3aebd", "a09bc17f5aa29b0dbdec9ede5f46cf1396d2405917ab02e6f1eb1019f388396e"},
      {"kind, cgroupfs, guaranteed, v2, from the machine",
       "github.com/cilium/tetragon pkg/sensors/exec/procevents/proc_reader_test.go",
       "0::/system.slice/docker-c1146e7ccca9ab4436abd69923c07d097b37b762ed21cc3f24584c2f84e77c57.scope/k"
       "ubelet/kubepods/pod55db13a1-c151-4cdd-a48b-e002a2b1fb58/21e677e6fe95215ea48bcb5609c10e67ba8e76a7"
       "a3ea749af704e72260eb93fe\n",
       "55db13a1-c151-4cdd-a48b-e002a2b1fb58", "21e677e6fe95215ea48bcb5609c10e67ba8e76a7a3ea749af704e72260eb93fe"},
      {"kind, cgroupfs, static pod, v2, from the machine",
       "github.com/cilium/tetragon pkg/sensors/exec/procevents/proc_reader_test.go",
       "0::/system.slice/docker-c1146e7ccca9ab4436abd69923c07d097b37b762ed21cc3f24584c2f84e77c57.scope/k"
       "ubelet/kubepods/burstable/pod09a70ae9ccc491e651e5c773579b3490/b0e6aa50e847c3d3b1880e307ec7996040"
       "275c8063832cffc9274defce2cb655\n",
       "09a70ae9ccc491e651e5c773579b3490", "b0e6aa50e847c3d3b1880e307ec7996040275c8063832cffc9274defce2cb655"},
      {"kind, cgroupfs, v1 and v2 together", "github.com/DataDog/datadog-agent pkg/util/cgroups/pid_mapper_test.go",
       "14:name=systemd:/docker/88ea268ece65a02d68b169fd74bcbcb427eb7f28900db0e3b906fb2eeb7341df/kubelet"
       "/kubepods/burstable/poda5ea884f-9e60-4912-bd62-fef9a31db47a/a51a9f7d073f848e7fc59e56e8f11524f330"
       "a2175a4ed26327da2dfe0d28015e\n"
       "13:rdma:/\n"
       "0::/docker/88ea268ece65a02d68b169fd74bcbcb427eb7f28900db0e3b906fb2eeb7341df/system.slice/contain"
       "erd.service\n",
       "a5ea884f-9e60-4912-bd62-fef9a31db47a", "a51a9f7d073f848e7fc59e56e8f11524f330a2175a4ed26327da2dfe0d28015e"},
      {"from another cgroup namespace, the same quality of service",
       "github.com/grafana/alloy internal/component/pyroscope/ebpf/discovery/target_test.go",
       "0::/../../kubepods-besteffort-pod88f6f4e3_59c0_4ce8_9ecf_391c8b5a60ad.slice/docker-656959d9ee87a"
       "0b131c601ce9d9f8f76b1dda60e8608c503b5979d849cbdc714.scope\n",
       "88f6f4e3-59c0-4ce8-9ecf-391c8b5a60ad", "656959d9ee87a0b131c601ce9d9f8f76b1dda60e8608c503b5979d849cbdc714"},
      {"from another cgroup namespace, another quality of service",
       "github.com/DataDog/datadog-agent pkg/util/cgroups/pid_mapper_test.go",
       "0::../../../kubepods-burstable.slice/kubepods-burstable-pod562c01d6_6aba_49fe_ae52_61c40c04eca4."
       "slice/docker-a51a9f7d073f848e7fc59e56e8f11524f330a2175a4ed26327da2dfe0d28015f.scope\n",
       "562c01d6-6aba-49fe-ae52-61c40c04eca4", "a51a9f7d073f848e7fc59e56e8f11524f330a2175a4ed26327da2dfe0d28015f"},
  };
  for (const Case& c : cases) {
    const auto pod = PodOfCgroups(c.cgroups);
    ASSERT_TRUE(pod) << c.shape << ", " << c.source;
    EXPECT_EQ(pod->pod_uid, c.pod_uid) << c.shape << ", " << c.source;
    EXPECT_EQ(pod->container_id, c.container_id) << c.shape << ", " << c.source;
  }
}

TEST(CgroupPath, NamesNoPodForWhatIsInNone) {
  struct Case {
    const char *shape, *source, *cgroups;
  };
  const Case cases[] = {
      {"a service of the system", "github.com/sustainable-computing-io/kepler/issues/153",
       "0::/system.slice/containerd.service\n"},
      {"a container of Docker alone", "github.com/ctrsploit/ctrsploit/issues/280",
       "12:net_cls,net_prio:/docker/2403ccfe427f1dc7b6120dccb9ac58c2f8456950380d587a9f33ea7f00dd303d\n"
       "10:rdma:/\n"
       "0::/system.slice/containerd.service\n"},
      {"a session", "github.com/grafana/alloy internal/component/pyroscope/ebpf/discovery/target_test.go",
       "0::/../../user.slice/user-501.slice/session-3.scope\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(PodOfCgroups(c.cgroups), std::nullopt) << c.shape << ", " << c.source;
}

TEST(CgroupPath, ACgroupThatAContainerMakesIsOfItsPod) {
  const std::string pod = "0::/kubepods/burstable/pod" + kUid + "/" + kContainer;
  const PodOfProcess want{kUid, kContainer};

  EXPECT_EQ(PodOfCgroups(pod + "/container\n"), want) << "crun's own, as in CRI-O before 1.33";
  EXPECT_EQ(PodOfCgroups(pod + "/kubelet/kubepods/pod" + kOther + "/" + kInner + "\n"), want) << "kind in a pod";
  EXPECT_EQ(PodOfCgroups(pod + "/kubepods-pod" + kOther + ".slice:cri-containerd:" + kInner + "\n"), want);
}

TEST(CgroupPath, AProcessOfThePodItselfIsInNoContainer) {
  EXPECT_EQ(PodOfCgroups("0::/kubepods/pod" + kUid + "\n"), (PodOfProcess{kUid, ""}));
  EXPECT_EQ(PodOfCgroups("0::/kubepods/pod" + kUid + "/kata_overhead\n"), (PodOfProcess{kUid, ""}));
}

TEST(CgroupPath, TheHierarchyThatKnowsTheContainerCounts) {
  EXPECT_EQ(PodOfCgroups("3:cpu:/kubepods/pod" + kUid + "\n2:pids:/kubepods/pod" + kUid + "/" + kContainer + "\n"),
            (PodOfProcess{kUid, kContainer}));
}

TEST(CgroupPath, ACgroupThatIsDeletedKeepsItsNames) {
  EXPECT_EQ(PodOfCgroups("0::/kubepods/pod" + kUid + "/" + kContainer + " (deleted)\n"),
            (PodOfProcess{kUid, kContainer}));
}

TEST(CgroupPath, NamesThatOnlyLookLikeThoseOfPodsAreNone) {
  for (const std::string path : {"podcast", "kubepods/pod123", "pod11111111-2222-3333-4444-55555555555Z",
                                 "pod11111111_2222_3333_4444_555555555555", "kubepods-burstable.slice", "x-pod.slice",
                                 "", "pod", ".slice", ":::", "////"}) {
    EXPECT_EQ(PodOfCgroups("0::/" + path + "/" + kContainer + "\n"), std::nullopt) << path;
  }
  EXPECT_EQ(PodOfCgroups(""), std::nullopt);
  EXPECT_EQ(PodOfCgroups("0"), std::nullopt);
}

}  // namespace
}  // namespace grus
