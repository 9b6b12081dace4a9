// SPDX-License-Identifier: Apache-2.0
#include "crds/types/part_memory.h"

#include <gtest/gtest.h>

#include "crds/types/sharing_names.h"

namespace api {
namespace {

std::int64_t SaidBy(const std::string& text) {
  kube::ObjectMeta pod;
  pod.annotations[kMemoryMiBAnnotation] = text;
  return MemoryMiBSaidBy(pod);
}

TEST(MemoryMiB, IsAWholeNumberInAnAnnotation) {
  EXPECT_EQ(MemoryMiBSaidBy({}), 0) << "nothing is said";
  EXPECT_EQ(SaidBy("1"), 1);
  EXPECT_EQ(SaidBy("8192"), 8192);
  EXPECT_EQ(SaidBy("99999999"), 99'999'999);
}

TEST(MemoryMiB, ThatMakesNoSenseIsNotTakenForNothing) {
  for (const char* text :
       {"", "0", "-1", "8Gi", "8192 ", " 8192", "8192.5", "1e3", "100000000", "99999999999999999999"}) {
    EXPECT_EQ(SaidBy(text), kSenselessMemory) << text;
  }
}

TEST(PagedMiB, IsReadAlike) {
  kube::ObjectMeta pod;
  pod.annotations[kMemoryMiBAnnotation] = "1";
  EXPECT_EQ(PagedMiBSaidBy(pod), 0);
  pod.annotations[kPagedMiBAnnotation] = "8192";
  EXPECT_EQ(PagedMiBSaidBy(pod), 8192);
  pod.annotations[kPagedMiBAnnotation] = "8Gi";
  EXPECT_EQ(PagedMiBSaidBy(pod), kSenselessMemory);
}

}  // namespace
}  // namespace api
