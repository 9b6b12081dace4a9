// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/agent/options.h"

#include <boost/program_options.hpp>
#include <filesystem>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>

#include "controllers/version/version.h"

namespace grus {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using kube::Error;
using kube::ErrorCode;

po::options_description Describe(AgentOptions& options) {
  po::options_description description(
      "grus-node-agent looks at the GPUs of one node once a second, finds the pods of the processes on them, and "
      "serves\n"
      "both to Prometheus. It labels the node with what its GPUs are, and says in Events what is wrong with them.\n"
      "It must run in the PID namespace of the node (hostPID).\n\n"
      "Usage: grus-node-agent --node-name NODE [options]\n\nOptions",
      100);
  auto add = description.add_options();
  const auto text = [](std::string& value, const char* name) { return po::value(&value)->value_name(name); };
  add("node-name", text(options.node_name, "NODE"), "Name of this node; its pods are watched.");
  add("metrics-bind-address", text(options.metrics_address, "ADDRESS")->default_value(options.metrics_address),
      "Address of /metrics and /healthz: host:port or :port.");
  add("alnair-names", po::value(&options.alnair_names)->value_name("BOOL")->implicit_value(true, "true"),
      "Also serve alnair_gpu_util and alnair_gpu_mem_util, as the original Alnair does (default: false).");
  add("alnair-annotations", po::value(&options.alnair_annotations)->value_name("BOOL")->implicit_value(true, "true"),
      "Also annotate the node with ai.centaurus.io/gpu-static and gpu-N, as the original Alnair does (default: "
      "false).");
  add("share-gpus", po::value(&options.shares_gpus)->value_name("BOOL")->implicit_value(true, "true"),
      "Also give parts of GPUs to pods, if the node has the label sharing.ai.centauruscloud.io/mode; needs the "
      "kubelet's "
      "folders device-plugins and pod-resources in /var/lib/kubelet, as root (default: false).");
  add("share-reserve-mib",
      po::value(&options.share_reserve_mib)->value_name("MIB")->default_value(options.share_reserve_mib),
      "Of each GPU's memory, what is not given to pods: the driver and each process need some.");
  add("mps-control", text(options.mps_control, "FILE"),
      "CUDA's nvidia-cuda-mps-control. The agent runs one for each shared GPU, if the node has the label "
      "sharing.ai.centauruscloud.io/enforcement=mps. If not set: such a node offers no parts.");
  add("mps-folder", text(options.mps_folder, "FOLDER")->default_value(options.mps_folder),
      "Where these daemons have their pipes and logs: a folder of the node, at the same path.");
  add("mps-shm", text(options.mps_shm, "FOLDER"),
      "Folder of the node that is the agent's own /dev/shm, and becomes that of containers under MPS: older drivers "
      "need one in common. If not set: they keep their own.");
  add("cuda-library", text(options.cuda_library, "FILE")->default_value(options.cuda_library),
      "The library that programs in containers load, and that holds them to their parts, if the node has the label "
      "sharing.ai.centauruscloud.io/enforcement=cooperative. If there is none, such a node offers no parts.");
  add("cuda-folder", text(options.cuda_folder, "FOLDER")->default_value(options.cuda_folder),
      "Where containers get it from: a folder of the node, at the same path, on a file system from which programs may "
      "be run, and which lasts when the node is rebooted.");
  add("cuda-shares", text(options.cuda_shares, "FOLDER")->default_value(options.cuda_shares),
      "Where agent and containers tell each other what these may have and have: a folder of the node, in memory, at "
      "the "
      "same path.");
  add("cuda-context-mebibytes",
      po::value(&options.cuda_context_mib)->value_name("MIB")->default_value(options.cuda_context_mib),
      "What a context takes of a GPU beside what its program asks for. It then counts when it is made, instead of when "
      "the driver tells of it, up to three seconds later.");
  add("proc", text(options.proc, "FOLDER")->default_value(options.proc), "Where the node's /proc is mounted.");
  add("kubeconfig", text(options.kubeconfig, "FILE"),
      "Kubeconfig file. If not set: the pod's service account when running in a cluster, else $KUBECONFIG, else "
      "~/.kube/config.");
  add("version", "Print version and commit and exit.");
  add("help,h", "Print this text and exit.");
  return description;
}

Error Bad(const std::string& option, const std::string& value, const std::string& allowed) {
  return Error(ErrorCode::kInvalidArgument, "--" + option + " \"" + value + "\": expected " + allowed);
}

// The agent removes what it finds in its folders and knows nothing of: none may be in another.
kube::Status CheckFolders(std::initializer_list<std::pair<const char*, std::string>> folders) {
  const auto whole = [](const std::string& path) { return (fs::path(path) / "").lexically_normal().string(); };
  for (const auto& [inner, inner_path] : folders) {
    for (const auto& [outer, outer_path] : folders) {
      if (inner == outer || !whole(inner_path).starts_with(whole(outer_path))) continue;
      return Bad(inner, inner_path, "a folder that is not in --" + std::string(outer) + " \"" + outer_path + "\"");
    }
  }
  return {};
}

}  // namespace

kube::Result<AgentOptions> ParseAgentOptions(int argc, const char* const* argv) {
  AgentOptions options;
  const po::options_description description = Describe(options);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv).options(description).positional({}).run(), values);
    po::notify(values);
  } catch (const po::error& e) {
    return Error(ErrorCode::kInvalidArgument, std::string(e.what()) + "; see grus-node-agent --help");
  }
  if (values.count("help") > 0) {
    std::ostringstream text;
    text << description;
    options.text_to_print = text.str();
    return options;
  }
  if (values.count("version") > 0) {
    options.text_to_print = std::string("grus-node-agent ") + kVersion + " (" + kCommit + ")\n";
    return options;
  }
  // The name becomes a field selector, in which commas and equals signs have a meaning.
  constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  if (options.node_name.empty() || options.node_name.find_first_not_of(kNameCharacters) != std::string::npos) {
    return Bad("node-name", options.node_name, "the name of this node, as in kubectl get nodes");
  }
  if (!options.proc.starts_with('/')) return Bad("proc", options.proc, "an absolute path such as /proc");
  for (const auto& [name, path] : {std::pair("mps-control", &options.mps_control), {"mps-shm", &options.mps_shm}}) {
    if (!path->empty() && !path->starts_with('/')) return Bad(name, *path, "an absolute path, or no such option");
  }
  for (const auto& [name, path] : {std::pair("mps-folder", &options.mps_folder),
                                   {"cuda-folder", &options.cuda_folder},
                                   {"cuda-shares", &options.cuda_shares}}) {
    if (!path->starts_with('/')) return Bad(name, *path, "an absolute path");
  }
  if (kube::Status checked = CheckFolders({{"cuda-folder", options.cuda_folder},
                                           {"cuda-shares", options.cuda_shares},
                                           {"mps-folder", options.mps_folder}});
      !checked) {
    return std::move(checked).error();
  }
  if (!options.cuda_library.empty() && !options.cuda_library.starts_with('/')) {
    return Bad("cuda-library", options.cuda_library, "an absolute path, or nothing");
  }
  if (options.cuda_context_mib < 0 || options.cuda_context_mib > (1 << 16)) {
    return Bad("cuda-context-mebibytes", std::to_string(options.cuda_context_mib), "MiB, from 0 to 65536");
  }
  if (options.share_reserve_mib < 0 || options.share_reserve_mib > (1 << 20)) {
    return Bad("share-reserve-mib", std::to_string(options.share_reserve_mib), "MiB of one GPU, from 0 to 1048576");
  }
  if (options.metrics_address.empty()) return Bad("metrics-bind-address", "", "an address such as :8080");
  return options;
}

}  // namespace grus
