// SPDX-License-Identifier: Apache-2.0
// What grus would tell Horovod, for replay.py: the host lists that PlanHosts makes of a sequence of pods, the two
// scripts of the launcher's pod, and what the workers' Python gets.
//
//   host_list_player --discovery HOSTS_FOLDER SCRATCH_FOLDER
//   host_list_player --launcher MIN MAX SLOTS
//   host_list_player --patch
//   host_list_player --lists MIN MAX SLOTS
//
// --lists reads one line for each look at the cluster:
//   SECONDS REPLICAS [ORDINAL:ready|ending|lost|unready:ADDRESS]...
// and answers each with the text of the list that stands then, and a line "." after it.
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "controllers/elastic/host_plan.h"
#include "controllers/elastic/scripts.h"
#include "tests/controllers/elastic/test_job.h"

namespace grus {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << "host_list_player: " << what << "\n";
  std::exit(2);
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Worker ReadPod(const std::string& word) {
  std::istringstream in(word);
  std::string ordinal, state, address;
  if (!std::getline(in, ordinal, ':') || !std::getline(in, state, ':')) Fail("no pod: " + word);
  std::getline(in, address);
  Worker worker;
  worker.ordinal = std::stoi(ordinal);
  worker.name = PodName(worker.ordinal);
  worker.address = address;
  worker.is_bound = true;
  worker.is_ready = state == "ready" || state == "lost";
  worker.is_ending = state == "ending";
  worker.has_lost_node = state == "lost";
  if (!worker.is_ready && !worker.is_ending && state != "unready") Fail("no state of a pod: " + word);
  return worker;
}

void PrintLists(const Sizes& sizes) {
  View view;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    int seconds = 0, replicas = 0;
    if (!(in >> seconds >> replicas)) Fail("no time and replicas: " + line);
    view.now = testing::At(seconds);
    view.pods.clear();
    for (std::string word; in >> word;) view.pods.push_back(ReadPod(word));
    WorkerSet leaving;
    for (const Worker& worker : view.pods) {
      if (worker.ordinal >= replicas) leaving.insert(&worker);
    }
    view.hosts = view.hosts ? PlanHosts(view, sizes, leaving).list : FirstHosts(view, sizes, leaving);
    std::cout << HostListText(*view.hosts) << "." << std::endl;
  }
}

int Main(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words[0];
  if (what == "--discovery" && words.size() == 3) {
    std::cout << Replaced(Replaced(DiscoveryScript(), kHostsFolder, words[1]), kScratchFolder, words[2]);
    return 0;
  }
  if (what == "--patch") {
    std::cout << HorovodPatch();
    return 0;
  }
  if ((what != "--launcher" && what != "--lists") || words.size() != 4) Fail("how to call it stands in its source");
  Sizes sizes;
  sizes.min = std::stoi(words[1]);
  sizes.max = sizes.wanted = std::stoi(words[2]);
  sizes.slots = std::stoi(words[3]);
  if (what == "--launcher") {
    std::cout << Replaced(LauncherCommand(TestJob().spec, sizes), ". /etc/grus/job/launcher.sh\n", LauncherScript());
  } else {
    PrintLists(sizes);
  }
  return 0;
}

}  // namespace
}  // namespace grus

int main(int argc, char** argv) { return grus::Main({argv + 1, argv + argc}); }
