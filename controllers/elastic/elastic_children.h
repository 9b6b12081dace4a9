// SPDX-License-Identifier: Apache-2.0
// The child objects of a job, as JSON to send. Pure.
//
// Our fields are laid over the user's pod templates. A template may set anything except what the job depends on: names,
// images, commands, labels, the ssh key, the host list, the GPUs.
#pragma once

#include "clientlib/model/core_v1.h"
#include "clientlib/model/json.h"
#include "clientlib/model/pod.h"
#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"
#include "controllers/elastic/ssh_key.h"

namespace grus {

// Names of the children; deterministic, so that a stale create fails as AlreadyExists.
std::string ServiceName(const api::ElasticHorovodJob& job);
std::string WorkersName(const api::ElasticHorovodJob& job);  // A worker's name is this, "-" and its ordinal.
std::string GroupName(const api::ElasticHorovodJob& job);    // The job's own: its key in the ledger is the gang's.
std::string LauncherName(const api::ElasticHorovodJob& job);
std::string HostsName(const api::ElasticHorovodJob& job);
std::string SecretName(const api::ElasticHorovodJob& job);  // Carries the UID: a job made again gets a new key.

kube::Json MakeService(const api::ElasticHorovodJob& job);
// A NetworkPolicy: only pods of the job reach its workers, and their ssh servers only the launcher. Others may be let
// in by further policies.
kube::Json MakeSshPolicy(const api::ElasticHorovodJob& job);
// Its ssh keys and the scripts of its pods.
kube::Json MakeSecret(const api::ElasticHorovodJob& job, const JobKeys& keys);
kube::Json MakeHosts(const api::ElasticHorovodJob& job, const HostList& list);
kube::Json MakeWorker(const api::ElasticHorovodJob& job, int ordinal, Gang gang);  // A pod.
kube::Json MakeLauncher(const api::ElasticHorovodJob& job);

// The PodGroup of the workers. REQUIRES: at least one worker.
kube::Json MakeGroup(const api::ElasticHorovodJob& job);

// A worker with the defaults of the API server, without a name.
kube::Pod WorkerPod(const api::ElasticHorovodJob& job);
// Likewise the launcher.
kube::Pod LauncherPodOf(const api::ElasticHorovodJob& job);
// The first field of the job's templates that grus cannot read: "spec.workersSpec.template.spec.containers: expected a
// list, found a string"; empty: grus can read all.
std::string UnreadableField(const api::ElasticHorovodJob& job);
// What the API server says of a refused child, and that field if it does not say it.
std::string RefusalText(const kube::Error& error, const api::ElasticHorovodJob& job);
// Pods without a name of their own, to ask the API server what it would make of them.
kube::Json WorkerToAsk(const api::ElasticHorovodJob& job);
kube::Json LauncherToAsk(const api::ElasticHorovodJob& job);

}  // namespace grus
