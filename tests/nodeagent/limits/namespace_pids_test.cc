// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/namespace_pids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NamespacePids, AreThoseOfAllNamespacesFromTheOutside) {
  const kube::testing::TempDir proc;
  proc.Write("71/status", "Name:\tNSpid: 5\nPid:\t71\nNSpid:\t71\t12\t1\nNSpgid:\t71\t12\t1\n");
  proc.Write("72/status", "Name:\tpython\nNSpid:\t72\n");
  proc.Write("73/status", "");
  EXPECT_THAT(NamespacePids(proc.path(), 71), ElementsAre(71, 12, 1));
  EXPECT_THAT(NamespacePids(proc.path(), 72), ElementsAre(72));
  EXPECT_THAT(NamespacePids(proc.path(), 73), IsEmpty());
  EXPECT_THAT(NamespacePids(proc.path(), 74), IsEmpty());
}

TEST(NamespacePids, AreFoundInTheRealProc) { EXPECT_THAT(NamespacePids("/proc", getpid()), Contains(getpid())); }

}  // namespace
}  // namespace grus
