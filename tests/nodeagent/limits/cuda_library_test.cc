// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/cuda_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/limits/lease_holder.h"
#include "tests/nodeagent/limits/own_mount.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

std::string Read(std::istream& file) {
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return Read(file);
}
ino_t InodeOf(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class CudaLibraryTest : public ::testing::Test {
 protected:
  const kube::testing::TempDir folder_;
  const std::string source_ = folder_.Write("image/libgrus-cuda.so", "first");
  CudaLibrary library_{source_, folder_.path("node/cuda")};
};

TEST_F(CudaLibraryTest, ItIsThereForEverybodyToReadWhateverTheUmask) {
  const mode_t before = umask(077);
  kit::Must(library_.Install());
  umask(before);

  EXPECT_EQ(ReadFile(library_.library()), "first");
  using std::filesystem::perms;
  const auto mode = [](const std::string& path) { return std::filesystem::status(path).permissions(); };
  EXPECT_EQ(mode(library_.library()), static_cast<perms>(0755));
}

TEST_F(CudaLibraryTest, ANewOneTakesThePlaceOfTheOldOneWhichStaysForThoseThatHaveIt) {
  kit::Must(library_.Install());
  std::ifstream mapped(library_.library());  // By a container that runs.
  std::ofstream(source_) << "second";
  kit::Must(library_.Install());

  EXPECT_EQ(ReadFile(library_.library()), "second");
  EXPECT_EQ(Read(mapped), "first");
}

TEST_F(CudaLibraryTest, AFileThatIsRightStaysAsItIsAndAnotherIsMadeAgain) {
  kit::Must(library_.Install());
  const ino_t library = InodeOf(library_.library());
  kit::Must(library_.Install());
  EXPECT_EQ(InodeOf(library_.library()), library);

  std::ofstream(library_.library()) << "cut sho";
  kit::Must(library_.Install());
  EXPECT_EQ(ReadFile(library_.library()), "first");
}

TEST_F(CudaLibraryTest, NoContainerCanMakeOthersWaitForItByALease) {
  kit::Must(library_.Install());
  EXPECT_EQ(testing::LeaseHolder(library_.library(), F_WRLCK).error(), EAGAIN);

  std::filesystem::create_hard_link(library_.library(), folder_.path("of a container"));
  std::ofstream(source_) << "second";
  kit::Must(library_.Install());
  EXPECT_EQ(testing::LeaseHolder(library_.library(), F_WRLCK).error(), EAGAIN);
  EXPECT_EQ(testing::LeaseHolder(folder_.path("of a container"), F_WRLCK).error(), EAGAIN) << "which runs on with it";
}

TEST_F(CudaLibraryTest, TheNextAgentKeepsItOpenToo) {
  kit::Must(CudaLibrary(source_, folder_.path("node/cuda")).Install());
  kit::Must(library_.Install());
  EXPECT_EQ(testing::LeaseHolder(library_.library(), F_WRLCK).error(), EAGAIN);
}

TEST_F(CudaLibraryTest, OneThatAContainerHasALeaseOnIsReplacedWithoutWaitingForIt) {
  kit::Must(CudaLibrary(source_, folder_.path("node/cuda")).Install());
  const ino_t before = InodeOf(library_.library());
  const testing::LeaseHolder hostile(library_.library(), F_WRLCK);
  ASSERT_EQ(hostile.error(), 0);
  kit::Must(library_.Install());
  EXPECT_NE(InodeOf(library_.library()), before);
  EXPECT_EQ(ReadFile(library_.library()), "first");
}

TEST_F(CudaLibraryTest, AFolderThatAContainerRuntimeHasMadeInItsPlaceGoes) {
  folder_.Write("node/cuda/libgrus-cuda.so/by/a/container", "");
  kit::Must(library_.Install());
  EXPECT_EQ(ReadFile(library_.library()), "first");
}

TEST_F(CudaLibraryTest, WithoutASourceNothingIsPutThere) {
  const kube::Status installed = CudaLibrary(folder_.path("none.so"), folder_.path("node")).Install();
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code(), kube::ErrorCode::kNotFound);
  EXPECT_THAT(installed.error().message(), HasSubstr("none.so: there is no such file"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("node")));

  std::ofstream(source_, std::ios::trunc).close();
  EXPECT_THAT(kube::Status(library_.Install()).error().message(), HasSubstr("it is empty"));
}

TEST_F(CudaLibraryTest, AFolderThatCannotBeWrittenIsNamed) {
  std::ofstream(folder_.path("node")) << "a file, where a folder should be";
  EXPECT_THAT(kube::Status(library_.Install()).error().message(), HasSubstr("make " + folder_.path("node/cuda")));
}

TEST_F(CudaLibraryTest, AFileSystemFromWhichNothingMayBeRunIsRefused) {
  std::filesystem::create_directories(folder_.path("node"));
  const auto is_refused = [&] {
    const kube::Status installed = library_.Install();
    return !installed && installed.error().message().find("noexec") != std::string::npos;
  };
  const testing::OwnMount result = testing::HoldsWithMount(folder_.path("node"), MS_NOEXEC, "", is_refused);
  if (result == testing::OwnMount::kMayNot) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(result, testing::OwnMount::kHolds);
}

}  // namespace
}  // namespace grus
