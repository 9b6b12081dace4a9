// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/scripts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "controllers/elastic/elastic_view.h"
#include "tests/controllers/elastic/test_job.h"
#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome RunShell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The discovery script with its folders in a place of the test's own.
class Discovery {
 public:
  Discovery() {
    std::string script = Replaced(DiscoveryScript(), kScratchFolder, dir_.path("scratch"));
    script_ = dir_.Write("discover_hosts.sh", Replaced(script, kHostsFolder, dir_.path("hosts")));
    std::filesystem::create_directory(dir_.path("scratch"));
  }
  void Mounted(const std::string& text) { dir_.Write("hosts/hosts", text); }
  void Pushed(const std::string& text) { dir_.Write("hosts/pushed", text); }
  const kube::testing::TempDir& dir() const { return dir_; }

  // At that second of the clock.
  Outcome Call(int now = 0) const {
    std::filesystem::permissions(dir_.Write("bin/date", "#!/bin/sh\necho " + std::to_string(now) + "\n"),
                                 std::filesystem::perms::owner_all);
    return RunShell("PATH=" + dir_.path("bin") + ":$PATH /bin/sh " + script_ + " 2>/dev/null");
  }

 private:
  kube::testing::TempDir dir_;
  std::string script_;
};

TEST(DiscoveryScript, PrintsTheNewerOfTheTwoLists) {
  struct Case {
    const char* rule;
    const char* mounted;  // nullptr: no such file.
    const char* pushed;
    const char* output;
  };
  const Case kCases[] = {
      {"only mounted", "revision 3\n1.1.1.1:1 a\n1.1.1.2:1 b\n", nullptr, "1.1.1.1:1\n1.1.1.2:1\n"},
      {"pushed is newer", "revision 3\n1.1.1.1:1 a\n", "revision 4\n1.1.1.2:2 b\n", "1.1.1.2:2\n"},
      {"by number, not by text", "revision 9\n1.1.1.1:1 a\n", "revision 10\n1.1.1.2:1 b\n", "1.1.1.2:1\n"},
      {"pushed is older", "revision 5\n1.1.1.1:1 a\n", "revision 4\n1.1.1.2:1 b\n", "1.1.1.1:1\n"},
      {"the same", "revision 4\n1.1.1.1:1 a\n", "revision 4\n1.1.1.2:1 b\n", "1.1.1.1:1\n"},
      {"nothing pushed yet", "revision 1\n1.1.1.1:1 a\n", "", "1.1.1.1:1\n"},
      {"only pushed", nullptr, "revision 1\n1.1.1.2:1 b\n", "1.1.1.2:1\n"},
      {"neither", nullptr, nullptr, ""},
      {"an empty list is an answer", "revision 2\n", "revision 3\n", ""},
      {"no newline at the end, as annotations come", "revision 1\n", "revision 2\n1.1.1.1:1 a\n1.1.1.2:1 b",
       "1.1.1.1:1\n1.1.1.2:1\n"},
      {"empty lines", "revision 1\n\n1.1.1.1:1 a\n\n", nullptr, "1.1.1.1:1\n"},
      {"noise for a revision", "revision x\n1.1.1.1:1 a\n", "revision y\n1.1.1.2:1 b\n", "1.1.1.1:1\n"},
      {"no revision at all", "1.1.1.1:1 a\n1.1.1.2:1 b\n", nullptr, "1.1.1.2:1\n"},
  };
  for (const Case& c : kCases) {
    Discovery discovery;
    if (c.mounted) discovery.Mounted(c.mounted);
    if (c.pushed) discovery.Pushed(c.pushed);
    for (int call = 1; call <= 2; ++call) {
      const Outcome outcome = discovery.Call();
      EXPECT_EQ(outcome.exit_code, 0) << c.rule;
      EXPECT_EQ(outcome.output, c.output) << c.rule;
    }
  }
}

TEST(DiscoveryScript, ReadsTheListAsTheControllerWritesIt) {
  HostList list;
  list.hosts = {{"a", "10.0.0.1"}, {"b", "10.0.0.2"}};
  list.slots = 4;
  list.revision = 12;
  Discovery discovery;
  discovery.Pushed(HostListText(list));
  EXPECT_EQ(discovery.Call().output, "10.0.0.1:4\n10.0.0.2:4\n");
}

TEST(DiscoveryScript, SeesThatAllHostsWereExchanged) {
  struct Case {
    const char* rule;
    std::vector<const char*> lists;
    bool is_exchanged;
  };
  const Case kCases[] = {
      {"one is kept", {"1.1.1.1:1 a\n1.1.1.2:1 b\n", "1.1.1.2:1 b\n1.1.1.3:1 c\n"}, false},
      {"none is kept", {"1.1.1.1:1 a\n", "1.1.1.2:1 a\n"}, true},
      {"one after the other", {"1.1.1.1:1 a\n1.1.1.2:1 b\n", "1.1.1.2:1 b\n1.1.1.3:1 a\n", "1.1.1.3:1 a\n"}, false},
      {"a longer address is another", {"1.1.1.1:1 a\n", "11.1.1.1:1 a\n"}, true},
      {"others come back first", {"1.1.1.1:1 a\n", "1.1.1.2:1 b\n", "1.1.1.1:1 a\n1.1.1.2:1 b\n"}, false},
      {"none is left yet", {"1.1.1.1:1 a\n", ""}, false},
      {"the same come back", {"1.1.1.1:1 a\n", "", "1.1.1.1:1 a\n"}, false},
      {"others come after none", {"1.1.1.1:1 a\n", "", "1.1.1.2:1 a\n"}, true},
      {"none has come yet", {"", "1.1.1.1:1 a\n"}, false},
  };
  for (const Case& c : kCases) {
    Discovery discovery;
    for (const char* list : c.lists) {
      discovery.Mounted(std::string("revision 1\n") + list);
      discovery.Call();
    }
    EXPECT_FALSE(std::filesystem::exists(discovery.dir().path("scratch/exchanged"))) << c.rule << ": not at once";
    const auto disjoint = discovery.dir().path("scratch/disjoint");
    EXPECT_EQ(std::filesystem::exists(disjoint), c.is_exchanged) << c.rule;
    if (c.is_exchanged) {
      EXPECT_EQ(discovery.Call(9).output, "") << c.rule << ": Horovod waits";
    }
    discovery.Call(10);
    EXPECT_EQ(std::filesystem::exists(discovery.dir().path("scratch/exchanged")), c.is_exchanged) << c.rule;
  }
}

TEST(DiscoveryScript, LosesNoHostWhenItCannotRemember) {
  Discovery discovery;
  discovery.Mounted("revision 1\n1.1.1.1:1 a\n1.1.1.2:1 b\n");
  std::filesystem::remove(discovery.dir().path("scratch"));
  for (int call = 1; call <= 2; ++call) {
    const Outcome outcome = discovery.Call();
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.output, "1.1.1.1:1\n1.1.1.2:1\n");
  }
}

// Horovod forgets a change that comes while it takes up another one: without this the new host would idle for ever.
TEST(DiscoveryScript, LeavesAnUnusedHostOutForThreeOfFifteenSeconds) {
  struct Case {
    const char* rule;
    std::vector<const char*> sessions;  // Files.
    std::vector<int> left_out;          // The seconds in which the second host is not printed.
  };
  const std::string living = std::to_string(::getpid());
  const std::string used = "1.1.1.1/" + living, both = "1.1.1.2/" + living;
  const Case kCases[] = {
      {"others train and it does not", {used.c_str()}, {12, 13, 14, 27, 28, 29}},
      {"nobody trains yet", {}, {}},
      {"both train", {used.c_str(), both.c_str()}, {}},
      {"its session has ended", {used.c_str(), "1.1.1.2/none"}, {12, 13, 14, 27, 28, 29}},
      {"one of its two sessions has ended", {used.c_str(), "1.1.1.2/none", both.c_str()}, {}},
  };
  for (const Case& c : kCases) {
    Discovery discovery;
    discovery.Mounted("revision 1\n1.1.1.1:1 a\n1.1.1.2:1 b\n");
    for (const char* session : c.sessions) discovery.dir().Write(std::string("scratch/sessions/") + session, "");
    std::vector<int> left_out;
    for (int now = 0; now < 30; ++now) {
      const std::string output = discovery.Call(1700000000 + now).output;
      EXPECT_THAT(output, HasSubstr("1.1.1.1:1\n")) << c.rule << ", second " << now;
      if (output.find("1.1.1.2:1\n") == std::string::npos) left_out.push_back(now);
    }
    EXPECT_EQ(left_out, c.left_out) << c.rule;
  }
}

TEST(DiscoveryScript, CountsAnewAfterAHostWasUsed) {
  Discovery discovery;
  discovery.Mounted("revision 1\n1.1.1.1:1 a\n1.1.1.2:1 b\n");
  const std::string living = std::to_string(::getpid());
  discovery.dir().Write("scratch/sessions/1.1.1.1/" + living, "");
  discovery.Call(100);
  discovery.dir().Write("scratch/sessions/1.1.1.2/" + living, "");
  discovery.Call(105);
  std::filesystem::remove(discovery.dir().path("scratch/sessions/1.1.1.2/" + living));
  discovery.Call(110);
  EXPECT_EQ(discovery.Call(113).output, "1.1.1.1:1\n1.1.1.2:1\n");
  EXPECT_EQ(discovery.Call(122).output, "1.1.1.1:1\n");
}

TEST(Scripts, AreShellThatParses) {
  api::ElasticHorovodJob job = TestJob();
  const std::pair<const char*, std::string> kScripts[] = {
      {"discovery", DiscoveryScript()},
      {"worker", WorkerScript()},
      {"pre-stop", PreStopScript()},
      {"launcher", LauncherScript()},
      {"command", LauncherCommand(job.spec, SizesOf(job.spec))},
  };
  kube::testing::TempDir dir;
  for (const auto& [name, text] : kScripts) {
    const Outcome outcome = RunShell("/bin/sh -n " + dir.Write(name, text) + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << name << ": " << outcome.output;
  }
  EXPECT_TRUE(DiscoveryScript().starts_with("#!/bin/sh\n"));  // Horovod executes it as a program.
}

// The launcher's script with its folders in a place of the test's own. `horovodrun`, `ssh` and `cp` are stand-ins.
class Launcher {
 public:
  explicit Launcher(const api::ElasticHorovodJobSpec& spec, const std::string& horovodrun) {
    Program("horovodrun", horovodrun);
    Program("cp", "exit 0");
    Program("ssh", "exit 255");
    std::filesystem::create_directory(dir_.path("scratch"));
    const auto local = [this](const std::string& text) {
      return Replaced(Replaced(text, kScratchFolder, dir_.path("scratch")), kJobFolder, dir_.path("job"));
    };
    dir_.Write("job/launcher.sh", local(LauncherScript()));
    script_ = dir_.Write("launch", local(LauncherCommand(spec, SizesOf(spec))));
  }
  void Program(const std::string& name, const std::string& body) {
    std::filesystem::permissions(dir_.Write("bin/" + name, "#!/bin/sh\n" + body + "\n"),
                                 std::filesystem::perms::owner_all);
  }
  void Scratch(const std::string& name, const std::string& text) { dir_.Write("scratch/" + name, text); }
  const kube::testing::TempDir& dir() const { return dir_; }
  Outcome Run(const std::string& environment = "") const {
    return RunShell(environment + " PATH=" + dir_.path("bin") + ":$PATH /bin/sh " + script_ + " 2>&1");
  }

 private:
  kube::testing::TempDir dir_;
  std::string script_;
};

// What the script gives to horovodrun, word by word.
std::vector<std::string> LauncherWords(const api::ElasticHorovodJobSpec& spec, const std::string& environment = "") {
  const Outcome outcome = Launcher(spec, "for w in \"$@\"; do echo \"$w\"; done").Run(environment);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  std::vector<std::string> words;
  for (std::size_t at = 0, end; (end = outcome.output.find('\n', at)) != std::string::npos; at = end + 1) {
    words.push_back(outcome.output.substr(at, end - at));
  }
  return words;
}

std::string After(const std::vector<std::string>& words, const std::string& option) {
  const auto at = std::find(words.begin(), words.end(), option);
  return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

TEST(LauncherScript, GivesHorovodSlotsNotWorkers) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.min_replicas = 2;
  job.spec.workers.max_replicas = 8;
  job.spec.workers.gpus_per_worker = 4;
  const auto words = LauncherWords(job.spec);
  EXPECT_EQ(After(words, "-np"), "8");
  EXPECT_EQ(After(words, "--min-np"), "1") << "below its minimum Horovod never restarts what died";
  EXPECT_EQ(After(words, "--max-np"), "32");
}

TEST(LauncherScript, PassesWhatElasticHorovodNeeds) {
  const auto words = LauncherWords(TestJob().spec);
  EXPECT_EQ(words.front(), "--gloo");
  EXPECT_EQ(After(words, "--host-discovery-script"), "/etc/grus/hosts/discover_hosts.sh");
  EXPECT_EQ(After(words, "--network-interfaces"), "eth0");
  EXPECT_NE(After(words, "--blacklist-cooldown-range"), "");
  EXPECT_EQ(After(words, "--ssh-port"), "2222");
  EXPECT_THAT(After(words, "--ssh-identity-file"), HasSubstr("/scratch/id_ed25519"));
}

TEST(LauncherScript, TheInterfaceCanBeNamed) {
  EXPECT_EQ(After(LauncherWords(TestJob().spec, "GRUS_NETWORK_INTERFACE=ib0"), "--network-interfaces"), "ib0");
}

TEST(LauncherScript, GlooWaitsAsLongAsTheUserSays) {
  EXPECT_EQ(After(LauncherWords(TestJob().spec), "--gloo-timeout-seconds"), "60");
  EXPECT_EQ(After(LauncherWords(TestJob().spec, "HOROVOD_GLOO_TIMEOUT_SECONDS=300"), "--gloo-timeout-seconds"), "300");
}

TEST(LauncherScript, PassesTheLimitsOfElasticTrainingThatTheUserSets) {
  api::ElasticHorovodJob job = TestJob();
  for (const char* flag : {"--elastic-timeout", "--reset-limit"})
    EXPECT_EQ(After(LauncherWords(job.spec), flag), "") << flag;
  job.spec.elastic.timeout_seconds = 1200;
  job.spec.elastic.reset_limit = 7;
  EXPECT_EQ(After(LauncherWords(job.spec), "--elastic-timeout"), "1200");
  EXPECT_EQ(After(LauncherWords(job.spec), "--reset-limit"), "7");
}

TEST(LauncherScript, EachSessionLeavesItsProcessForTheDiscoveryScript) {
  Launcher launcher(TestJob().spec, "ssh -p 2222 -i /key 10.0.0.7 '/bin/bash -c \"train 1.2.3\"'");
  launcher.Program("ssh", "echo $$");
  const Outcome outcome = launcher.Run();
  EXPECT_TRUE(std::filesystem::exists(
      launcher.dir().path("scratch/sessions/10.0.0.7/" + outcome.output.substr(0, outcome.output.find('\n')))))
      << outcome.output;
}

TEST(LauncherScript, AMinimumOfNoneStillNeedsOneSlot) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.min_replicas = 0;
  job.spec.workers.max_replicas = 2;
  EXPECT_EQ(After(LauncherWords(job.spec), "-np"), "1");
}

TEST(LauncherScript, TellsLostWorkersFromAFailedTraining) {
  struct Case {
    const char* rule;
    const char* horovodrun;
    const char* hosts;  // That Horovod was told last; nullptr: none were ever.
    bool is_reached, is_exchanged;
    int exit_code;
    bool was_connected = true;
  };
  const Case kCases[] = {
      {"success", "exit 0", "1.1.1.1:1\n", false, false, 0},
      {"the training failed, its workers are there", "exit 1", "1.1.1.1:1\n1.1.1.2:1\n", true, false, 1},
      {"no worker answers", "exit 1", "1.1.1.1:1\n1.1.1.2:1\n", false, false, kWorkersLostExitCode},
      {"others have taken their places", "exit 1", "1.1.1.3:1\n", true, true, kWorkersLostExitCode},
      {"it never had a worker", "exit 127", nullptr, false, false, 127},
      {"nor when it never had a worker", "exit 255", nullptr, false, false, 1},
      {"horovodrun's own code is not taken for ours", "exit 75", "1.1.1.1:1\n", true, false, 1},
      {"nor is the kubelet's for a node that was restarted", "exit 255", "1.1.1.1:1\n", true, false, 1},
      {"killed", "kill -9 $$", "1.1.1.1:1\n", true, false, 137},
      {"no worker was ever reached", "exit 1", "1.1.1.1:1\n", false, false, 1, false},
  };
  for (const Case& c : kCases) {
    Launcher launcher(TestJob().spec, c.horovodrun);
    if (c.hosts) launcher.Scratch("hosts", c.hosts);
    if (c.is_reached) launcher.Program("ssh", "exit 0");
    if (c.is_exchanged) launcher.Scratch("exchanged", "");
    if (c.was_connected) launcher.Scratch("connected", "");
    const Outcome outcome = launcher.Run();
    EXPECT_EQ(outcome.exit_code, c.exit_code) << c.rule << ": " << outcome.output;
  }
}

TEST(LauncherScript, ATermEndsTheTrainingAndIsNoLossOfWorkers) {
  // The stand-in tells its parent, the script, to end, as the kubelet does, and ends with a code of its own.
  Launcher launcher(TestJob().spec, "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.05; done");
  launcher.Scratch("hosts", "1.1.1.1:1\n");
  EXPECT_EQ(launcher.Run().exit_code, 9);
}

// Seen on a real node: the launcher's pod was deleted, and the job was Succeeded in the midst of its training.
TEST(LauncherScript, WhatWasStoppedHasNotSucceeded) {
  Launcher launcher(TestJob().spec, "trap 'exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.05; done");
  EXPECT_EQ(launcher.Run().exit_code, 143);
}

TEST(LauncherScript, TheCommandsWordsAreJoinedForAShell) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.launcher.python_command = {"python", "/train.py --lr 0.1", "--name", "'two words'", "$GRUS_TEST_EPOCHS"};
  const auto words = LauncherWords(job.spec, "GRUS_TEST_EPOCHS=90");
  ASSERT_GE(words.size(), 7U);
  EXPECT_EQ(std::vector(words.end() - 7, words.end()),
            (std::vector<std::string>{"python", "/train.py", "--lr", "0.1", "--name", "two words", "90"}));
}

// As without root: a Secret's file is read-only, and so is its copy.
TEST(WorkerScript, StartsAgainInItsPod) {
  kube::testing::TempDir dir;
  const auto make = [&](const std::string& name, const std::string& text, std::filesystem::perms perms) {
    std::filesystem::permissions(dir.Write(name, text), perms);
  };
  make("job/host_key", "key", std::filesystem::perms::owner_read);
  make("bin/sshd", "#!/bin/sh\nexit 0\n", std::filesystem::perms::owner_all);
  // Root may write over what is read-only.
  make("bin/cp", "#!/bin/sh\n[ ! -e \"$2\" ] && exec /bin/cp \"$@\"\n", std::filesystem::perms::owner_all);
  const std::string script = dir.Write(
      "worker", Replaced(Replaced(WorkerScript(), kScratchFolder, dir.path("scratch")), kJobFolder, dir.path("job")));
  for (int start = 1; start <= 2; ++start) {
    const Outcome outcome = RunShell("PATH=" + dir.path("bin") + ":$PATH /bin/sh " + script + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << "start " << start << ": " << outcome.output;
    EXPECT_FALSE(std::filesystem::exists(dir.path("scratch/sessions/123"))) << "a process of the last life";
    dir.Write("scratch/sessions/123", "");
  }
}

TEST(WorkerScript, ServesOnThePortThatTheLauncherCalls) {
  EXPECT_THAT(WorkerScript(), HasSubstr("-p 2222 "));
  EXPECT_THAT(WorkerScript(), HasSubstr("PasswordAuthentication=no"));
}

}  // namespace
}  // namespace grus
