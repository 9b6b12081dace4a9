// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/scripts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "controllers/elastic/elastic_view.h"
#include "tests/controllers/elastic/test_job.h"
#include "tests/support/temp_dir.h"

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
  while (std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
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

// The discovery script with its folders in a place of the test's own, and a resolver that knows the names
// given.
class Discovery {
 public:
  Discovery() {
    std::string script = Replaced(DiscoveryScript(), kHostsFolder, dir_.path("hosts"));
    script_ = dir_.Write("discover_hosts.sh", Replaced(script, "/tmp/grus/resolved", dir_.path("resolved")));
    Resolves("a.s b.s c.s d.s");
  }
  void Resolves(const std::string& names) {
    const std::string path = dir_.Write(
        "bin/getent", "#!/bin/sh\nfor n in " + names + "; do [ \"$2\" = \"$n\" ] && exit 0; done\nexit 2\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  void Mounted(const std::string& text) { dir_.Write("hosts/hosts", text); }
  void Pushed(const std::string& text) { dir_.Write("hosts/pushed", text); }
  const kube::testing::TempDir& dir() const { return dir_; }

  Outcome Call(const std::string& shell = "/bin/sh") const {
    return RunShell("PATH=" + dir_.path("bin") + ":$PATH " + shell + " " + script_ + " 2>/dev/null");
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
      {"only mounted", "revision 3\na.s:1\nb.s:1\n", nullptr, "a.s:1\nb.s:1\n"},
      {"pushed is newer", "revision 3\na.s:1\n", "revision 4\nb.s:2\n", "b.s:2\n"},
      {"by number, not by text", "revision 9\na.s:1\n", "revision 10\nb.s:1\n", "b.s:1\n"},
      {"pushed is older", "revision 5\na.s:1\n", "revision 4\nb.s:1\n", "a.s:1\n"},
      {"the same", "revision 4\na.s:1\n", "revision 4\nb.s:1\n", "a.s:1\n"},
      {"nothing pushed yet", "revision 1\na.s:1\n", "", "a.s:1\n"},
      {"only pushed", nullptr, "revision 1\nb.s:1\n", "b.s:1\n"},
      {"neither", nullptr, nullptr, ""},
      {"an empty list is an answer", "revision 2\n", "revision 3\n", ""},
      {"no newline at the end, as annotations come", "revision 1\n", "revision 2\na.s:1\nb.s:1",
       "a.s:1\nb.s:1\n"},
      {"empty lines", "revision 1\n\na.s:1\n\n", nullptr, "a.s:1\n"},
      {"noise for a revision", "revision x\na.s:1\n", "revision y\nb.s:1\n", "a.s:1\n"},
      {"no revision at all", "a.s:1\nb.s:1\n", nullptr, "b.s:1\n"},
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
  list.hosts = {"a", "b"};
  list.slots = 4;
  list.revision = 12;
  Discovery discovery;
  discovery.Pushed(HostListText(list, "s"));
  EXPECT_EQ(discovery.Call().output, "a.s:4\nb.s:4\n");
}

TEST(DiscoveryScript, ANameIsHandedOnWhenItResolvesAndFromThenOn) {
  Discovery discovery;
  discovery.Mounted("revision 1\na.s:1\nb.s:1\nc.s:1\n");
  discovery.Resolves("a.s c.s");
  EXPECT_EQ(discovery.Call().output, "a.s:1\nc.s:1\n");
  discovery.Resolves("b.s");  // A hiccup of the name server takes no host away.
  EXPECT_EQ(discovery.Call().output, "a.s:1\nb.s:1\nc.s:1\n");
}

TEST(DiscoveryScript, LosesNoHostWhenItCannotRemember) {
  Discovery discovery;
  discovery.Mounted("revision 1\na.s:1\nb.s:1\n");
  discovery.dir().Write("resolved", "a file where the folder should be");
  const Outcome outcome = discovery.Call();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "a.s:1\nb.s:1\n");
}

TEST(Scripts, AreShellThatParses) {
  api::ElasticHorovodJob job = TestJob();
  const std::pair<const char*, std::string> kScripts[] = {
      {"discovery", DiscoveryScript()},
      {"worker", WorkerScript()},
      {"launcher", LauncherScript(job.spec, SizesOf(job.spec.workers))},
  };
  kube::testing::TempDir dir;
  for (const auto& [name, text] : kScripts) {
    const Outcome outcome = RunShell("/bin/sh -n " + dir.Write(name, text) + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << name << ": " << outcome.output;
  }
  EXPECT_TRUE(DiscoveryScript().starts_with("#!/bin/sh\n"));  // Horovod executes it as a program.
}

// What the launcher's script executes: one word a line. `horovodrun` and `cp` are stand-ins.
std::vector<std::string> LauncherWords(const api::ElasticHorovodJobSpec& spec,
                                       const std::string& environment = "") {
  kube::testing::TempDir dir;
  for (const auto& [name, text] :
       {std::pair("horovodrun", "#!/bin/sh\nfor w in \"$@\"; do echo \"$w\"; done\n"),
        {"cp", "#!/bin/sh\nexit 0\n"}}) {
    std::filesystem::permissions(dir.Write(std::string("bin/") + name, text),
                                 std::filesystem::perms::owner_all);
  }
  const std::string script =
      dir.Write("launch", Replaced(LauncherScript(spec, SizesOf(spec.workers)), "mkdir -p /tmp/grus",
                                   "mkdir -p " + dir.path("grus")));
  const Outcome outcome =
      RunShell(environment + " PATH=" + dir.path("bin") + ":$PATH /bin/sh " + script + " 2>&1");
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
  EXPECT_EQ(After(words, "--min-np"), "8");
  EXPECT_EQ(After(words, "--max-np"), "32");
}

TEST(LauncherScript, PassesWhatElasticHorovodNeeds) {
  const auto words = LauncherWords(TestJob().spec);
  EXPECT_EQ(words.front(), "--gloo");
  EXPECT_EQ(After(words, "--host-discovery-script"), "/etc/grus/hosts/discover_hosts.sh");
  EXPECT_EQ(After(words, "--network-interfaces"), "eth0");
  EXPECT_NE(After(words, "--blacklist-cooldown-range"), "");
  EXPECT_EQ(After(words, "--ssh-port"), "2222");
  EXPECT_EQ(After(words, "--ssh-identity-file"), "/tmp/grus/id_ed25519");
}

TEST(LauncherScript, TheInterfaceCanBeNamed) {
  EXPECT_EQ(After(LauncherWords(TestJob().spec, "GRUS_NETWORK_INTERFACE=ib0"), "--network-interfaces"),
            "ib0");
}

TEST(LauncherScript, AMinimumOfNoneStillNeedsOneSlot) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.min_replicas = 0;
  job.spec.workers.max_replicas = 2;
  EXPECT_EQ(After(LauncherWords(job.spec), "--min-np"), "1");
}

TEST(LauncherScript, TheCommandsWordsAreJoinedForAShell) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.launcher.python_command = {"python", "/train.py --lr 0.1", "--name", "'two words'",
                                      "$GRUS_TEST_EPOCHS"};
  const auto words = LauncherWords(job.spec, "GRUS_TEST_EPOCHS=90");
  ASSERT_GE(words.size(), 7U);
  EXPECT_EQ(std::vector(words.end() - 7, words.end()),
            (std::vector<std::string>{"python", "/train.py", "--lr", "0.1", "--name", "two words", "90"}));
}

TEST(WorkerScript, ServesOnThePortThatTheLauncherCalls) {
  EXPECT_THAT(WorkerScript(), HasSubstr("-p 2222 "));
  EXPECT_THAT(WorkerScript(), HasSubstr("PasswordAuthentication=no"));
}

}  // namespace
}  // namespace grus
