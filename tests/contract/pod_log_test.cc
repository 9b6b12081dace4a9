// SPDX-License-Identifier: Apache-2.0
// GET pods/NAME/log. On the real side kwok is the kubelet, which reads what a container has logged from a file.
#include "tests/contract/pods.h"

namespace kube::contract {
namespace {

class PodLog : public PodContract {
 protected:
  std::string LogOf(const std::string& pod, const std::string& query = "") {
    return Pods() + "/" + pod + "/log" + query;
  }
  // A pod that runs, with three lines in its log, the second of them in two parts.
  void RunPod(const std::string& name) {
    MakePod(name, R"({"nodeName":")" + NodeWithLogs() + "\"}");
    const Answer runs = Merge(Pods() + "/" + name + "/status",
                              R"({"status":{"phase":"Running","containerStatuses":[{"name":"c","image":"i","imageID":"",
                                  "ready":true,"restartCount":0,"state":{"running":{}}}]}})");
    if (runs.status != 200) throw std::runtime_error(runs.http.body);
    LogLine(name, "2026-01-02T03:04:05.000000001Z", "one\n");
    const TimePoint until = clock().Now() + kLimit;
    while (Get(LogOf(name)).status != 200 && clock().Now() < until) {
    }
    LogLine(name, "2026-01-02T03:04:06.5Z", "tw");
    LogLine(name, "2026-01-02T03:04:06.6Z", "o\n");
    LogLine(name, "2026-01-02T03:04:07Z", "three\n");
  }
  std::string Text(const std::string& query) {
    const Answer got = Get(LogOf("p", query));
    return got.status == 200 ? got.http.body : std::to_string(got.status) + " " + got.http.body;
  }
};

TEST_F(PodLog, OfAPodThatIsNotThereIsNotFound) {
  EXPECT_TRUE(Refused(Get(LogOf("none")), 404, "NotFound", "pods \"none\" not found"));
}

TEST_F(PodLog, OfAPodWithoutANodeIsNoContent) {
  MakePod("p");
  const Answer got = Get(LogOf("p"));
  EXPECT_EQ(got.status, 204);
  EXPECT_EQ(got.http.body, "");
}

TEST_F(PodLog, OfSeveralContainersNeedsAName) {
  MakePod("p", R"({"initContainers":[{"name":"i","image":"i"}],
                   "containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]})");
  EXPECT_TRUE(Refused(Get(LogOf("p")), 400, "BadRequest",
                      "a container name must be specified for pod p, choose one of: [i a b]"));
  EXPECT_TRUE(Refused(Get(LogOf("p", "?container=x")), 400, "BadRequest", "container x is not valid for pod p"));
  EXPECT_EQ(Get(LogOf("p", "?container=b")).status, 204);
  EXPECT_EQ(Get(LogOf("p", "?container=i")).status, 204);
}

TEST_F(PodLog, IsPlainText) {
  RunPod("p");
  const Answer got = Get(LogOf("p"));
  EXPECT_EQ(got.http.body, "one\ntwo\nthree\n");
  EXPECT_EQ(got.http.Header("content-type"), "text/plain");
}

TEST_F(PodLog, HasTheTimeOfEachLinesBeginningIfAsked) {
  RunPod("p");
  EXPECT_EQ(Text("?timestamps=true"),
            "2026-01-02T03:04:05.000000001Z one\n2026-01-02T03:04:06.500000000Z two\n"
            "2026-01-02T03:04:07.000000000Z three\n");
}

TEST_F(PodLog, SinceTimeIsOfWholeSecondsAndIncluded) {
  RunPod("p");
  EXPECT_EQ(Text("?sinceTime=2026-01-02T03:04:06Z"), "two\nthree\n");
  EXPECT_EQ(Text("?sinceTime=2026-01-02T03:04:06.999Z"), "two\nthree\n");
  EXPECT_EQ(Text("?sinceTime=2026-01-02T03:04:07Z"), "three\n");
  EXPECT_EQ(Text("?sinceTime=2026-01-02T03:04:08Z"), "");
}

TEST_F(PodLog, SinceTimeMayBeginWithinALineWhichThenHasNoTime) {
  RunPod("p");
  LogLine("p", "2026-01-02T03:04:08.9Z", "fo");
  LogLine("p", "2026-01-02T03:04:09Z", "ur\n");
  EXPECT_EQ(Text("?sinceTime=2026-01-02T03:04:09Z&timestamps=true"), "ur\n");
}

TEST_F(PodLog, TailLinesCountsRecords) {
  RunPod("p");
  EXPECT_EQ(Text("?tailLines=1"), "three\n");
  EXPECT_EQ(Text("?tailLines=2"), "o\nthree\n");
  EXPECT_EQ(Text("?tailLines=9"), "one\ntwo\nthree\n");
  EXPECT_EQ(Text("?tailLines=0"), "");
  EXPECT_EQ(Text("?tailLines=1&sinceTime=2026-01-02T03:04:05Z"), "three\n");
}

TEST_F(PodLog, LimitBytesCutsALine) {
  RunPod("p");
  EXPECT_EQ(Text("?limitBytes=6"), "one\ntw");
  EXPECT_EQ(Text("?limitBytes=1&timestamps=true"), "2");
  EXPECT_EQ(Text("?limitBytes=1000"), "one\ntwo\nthree\n");
}

TEST_F(PodLog, AFollowerGetsWhatComesLater) {
  RunPod("p");
  Result<std::unique_ptr<ByteStream>> stream =
      client().PodLog({ns(), "p"}, {.follow = true, .tail_lines = 1, .limit_bytes = 16});
  ASSERT_TRUE(stream) << stream.error().message();
  std::string text;
  const auto read_until = [&](std::string_view end) {
    const TimePoint until = clock().Now() + kLimit;
    for (bool is_open = true; is_open && !text.ends_with(end);) {
      Result<std::string> bytes = (*stream)->Read(until, {});
      is_open = bytes && !bytes->empty();
      if (is_open) text += *bytes;
    }
  };
  read_until("three\n");
  EXPECT_EQ(text, "three\n");
  LogLine("p", "2026-01-02T03:04:08Z", "later\n");
  read_until("later\n");
  EXPECT_EQ(text, "three\nlater\n");
  LogLine("p", "2026-01-02T03:04:09Z", "too long\n");
  read_until("(end)");
  EXPECT_EQ(text, "three\nlater\ntoo ") << "the limit ends the stream";
}

}  // namespace
}  // namespace kube::contract
