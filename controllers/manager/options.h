// SPDX-License-Identifier: Apache-2.0
// The command line of grus-manager.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/base/result.h"
#include "controllers/cluster/nominations.h"
#include "controllers/extender/utilization_score.h"
#include "controllers/interference/shared_job.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/profiler/pod_owners.h"

namespace grus {

struct Options {
  std::string kubeconfig, context;
  std::vector<std::string> controllers = {"elastic", "gang", "trial", "queues", "profiler"};
  std::vector<std::string> namespaces;  // Empty: all.
  bool count_all_pods = false;          // Also those of other namespaces.
  bool leader_elect = false;
  std::string leader_elect_namespace;  // Empty: the namespace we run in.
  std::string leader_elect_name = "grus-manager";
  std::vector<std::string> scheduler_lease_namespaces = {"kube-system"};  // Leases elsewhere are anybody's.
  std::string metrics_address = ":8080", health_address = ":8081";        // "0": off.
  bool ssh_network_policies = false;
  bool metrics_secure = false;
  std::string metrics_cert_file, metrics_key_file;
  std::string extender_address = ":8443";  // If the extender runs.
  // Without these it talks plain HTTP; without a CA of clients it binds nothing.
  std::string extender_cert_file, extender_key_file, extender_client_ca_file;
  std::string extender_service, extender_pod_address;  // Where the one that leads is found; empty: nobody is told.
  std::vector<std::string> extender_clients;  // Names in clients' certificates; empty: any that the CA has signed.
  ModelWeights gpu_weights;                   // For nodes that are scored by what is measured.
  std::vector<CoRunSample> told_co_runs;      // By a model file; beside those that are measured here.
  Nominations nominations = Nominations::kAuto;
  std::string own_namespace;  // Not an option: known once connected. Empty: no nomination probe.
  double resize_seconds = 20;
  ProfileTrust profile_trust = ProfileTrust::kNamespace;
  std::vector<std::string> prometheus_servers;
  std::string usage_prometheus, usage_selector;  // No URL: what jobs use is not recorded.
  std::vector<OwnerKind> owner_kinds;
  bool alnair_annotations = false;
  bool RecordsUsage() const { return Runs("profiler") && !usage_prometheus.empty(); }
  int profile_days = 180;     // 0: profiles are kept for ever.
  int reconcile_threads = 8;  // They mostly wait for the API server.
  kube::LogLevel log_level = kube::LogLevel::kInfo;
  kube::LogFormat log_format = kube::LogFormat::kText;

  bool check = false;                            // Only ask what we may, print it, and exit.
  bool Runs(std::string_view controller) const;  // One of `controllers`.

  std::string text_to_print;  // --help and --version: print this and exit 0.
};

// Errors (kInvalidArgument) name the option, its value and what is allowed.
kube::Result<Options> ParseOptions(int argc, const char* const* argv);

}  // namespace grus
