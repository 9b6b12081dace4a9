// SPDX-License-Identifier: Apache-2.0
// The child objects of a job, as JSON to send. Pure.
//
// Our fields are laid over the user's pod templates: a template can say anything but what the job depends on: names,
// images, commands, labels, the ssh key, the host list, the GPUs.
#pragma once

#include "clientlib/model/core_v1.h"
#include "clientlib/model/json.h"
#include "clientlib/model/pod.h"
#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"
#include "controllers/elastic/ssh_key.h"

namespace grus {

// On the StatefulSet: its Secret holds the scripts, too. Those that an older grus made hold the key alone.
inline constexpr char kFilesLabel[] = "ai.centauruscloud.io/files";
inline constexpr char kJobVolume[] = "grus-job";  // In pods: that Secret.
inline constexpr char kDiscoveryFile[] = "discover_hosts.sh";

kube::Json MakeService(const api::ElasticHorovodJob& job);
kube::Json MakeSecret(const api::ElasticHorovodJob& job, const SshKey& key);  // With the scripts of its pods.
std::optional<SshKey> KeyIn(const kube::Secret& secret);
kube::Json MakeHosts(const api::ElasticHorovodJob& job, const HostList& list);
kube::Json MakeWorkers(const api::ElasticHorovodJob& job, const WorkersState& size);
kube::Json MakeLauncher(const api::ElasticHorovodJob& job);

// The gang of the workers; REQUIRES: they are at least one.
kube::Json MakeGroup(const api::ElasticHorovodJob& job);

// A worker as the API server will complete it, for placement; without a name.
kube::Pod WorkerPod(const api::ElasticHorovodJob& job);
// Likewise the launcher's, for quotas.
kube::Pod LauncherPodOf(const api::ElasticHorovodJob& job);
// The first field of its templates that grus cannot read: "spec.workersSpec.template.spec.containers: expected a list,
// found a string"; empty: it can read all.
std::string UnreadableField(const api::ElasticHorovodJob& job);
// A pod of the template of a StatefulSet or Job of ours, as that one's controller would create it.
kube::Json PodOfTemplate(const kube::Json& workload);

}  // namespace grus
