// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SaysFault, OfFailedServersAndClientsAndOfNothingElse) {
  for (const char* line :
       {"[2024-04-29 11:22:10.441 Control    73] Server encountered a fatal exception. Shutting down",
        "[2024-04-29 11:22:10.446 Control    73] Server 95 exited with status 1",
        "Server is handling a FATAL GPU error.", "status of client {4660, 1} is FAULT",
        "Server 95 was killed by signal 9"}) {
    EXPECT_TRUE(SaysFault(line)) << line;
  }
  for (const char* line :
       {"[2024-04-29 11:22:10.446 Control    73] Server 95 exited with status 0",
        "NEW CLIENT 0 from user 0: Server is not ready, push client to pending list",
        "User did not send valid credentials", "Client {PID: 4267, Context ID: 0} disconnected",
        "set_default_active_thread_percentage 30", "default pinned memory limit", "", "exited with status "}) {
    EXPECT_FALSE(SaysFault(line)) << line;
  }
}

class MpsLogTest : public ::testing::Test {
 protected:
  void Append(const std::string& file, const std::string& text) {
    std::ofstream(folder_.path(file), std::ios::app) << text;
  }
  const kube::testing::TempDir folder_;
};

TEST_F(MpsLogTest, TellsOfNewLinesOfBothFilesOnceAndNotOfOldOnes) {
  Append("control.log", "Server 1 exited with status 1\n");
  MpsLog log(folder_.path());
  EXPECT_THAT(log.NewFaults(), IsEmpty());

  Append("control.log", "Accepting connection...\nServer 2 exited with status 1\n");
  Append("server.log", "fatal\n");
  EXPECT_THAT(log.NewFaults(), ElementsAre("Server 2 exited with status 1", "fatal"));
  EXPECT_THAT(log.NewFaults(), IsEmpty());
}

TEST_F(MpsLogTest, ALineIsReadWhenItIsWhole) {
  MpsLog log(folder_.path());
  Append("server.log", "a fat");
  EXPECT_THAT(log.NewFaults(), IsEmpty());
  Append("server.log", "al error\n");
  EXPECT_THAT(log.NewFaults(), ElementsAre("a fatal error"));
}

TEST_F(MpsLogTest, AFileThatBeginsAnewIsReadFromItsBeginning) {
  Append("server.log", "a long line that says nothing\n");
  MpsLog log(folder_.path());
  std::ofstream(folder_.path("server.log"), std::ios::trunc) << "fatal\n";
  EXPECT_THAT(log.NewFaults(), ElementsAre("fatal"));
}

TEST_F(MpsLogTest, OfALongFileALookReadsAPartAndTheNextTheRest) {
  MpsLog log(folder_.path());
  Append("server.log", std::string(300 << 10, 'x') + "\nfatal\n");
  EXPECT_THAT(log.NewFaults(), IsEmpty());
  EXPECT_THAT(log.NewFaults(), ElementsAre("fatal"));
}

}  // namespace
}  // namespace grus
