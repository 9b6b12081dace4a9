// SPDX-License-Identifier: Apache-2.0
// Rule: arrays count as what their elements take, of each format.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class ArrayLimitTest : public LimitedTest {};

TEST_F(ArrayLimitTest, EachFormatCountsAsItsElementsTake) {
  struct Format {
    int number, channels;
    std::uint64_t bytes;  // Of 1,022 x 510 elements.
  };
  constexpr std::uint64_t kElements = 1022 * 510, kBlocks = 256 * 128;
  std::vector<Format> formats = {{0x01, 4, kElements * 4},
                                 {0x09, 2, kElements * 4},
                                 {0x10, 4, kElements * 8},
                                 {0x20, 4, kElements * 16},
                                 {0xb0, 3, kElements * 3 / 2}};
  for (const int eight : {0x91, 0x92, 0x97, 0x98}) formats.push_back({eight, 4, kBlocks * 8});
  for (const int sixteen : {0x93, 0x94, 0x95, 0x96, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e}) {
    formats.push_back({sixteen, 4, kBlocks * 16});
  }
  for (const int first : {0xc0, 0xc6}) {  // UNORM, SNORM
    formats.insert(formats.end(), {{first, 1, kElements},
                                   {first + 1, 2, kElements * 2},
                                   {first + 2, 4, kElements * 4},
                                   {first + 3, 1, kElements * 2},
                                   {first + 4, 2, kElements * 4},
                                   {first + 5, 4, kElements * 8}});
  }
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("start");
  for (const Format& format : formats) {
    const std::string named = std::to_string(format.number) + " " + std::to_string(format.channels);
    const std::string array = client->Ask("array 1022 510 " + named);
    ASSERT_THAT(array, StartsWith("ok")) << named;
    EXPECT_EQ(Counted() - 300 * kMiB, (format.bytes + 511) / 512 * 512) << named;
    EXPECT_EQ(Counted(), world_->Used(0)) << named;
    EXPECT_EQ(client->Ask("freearray " + array.substr(3)), "ok");
    EXPECT_EQ(Counted(), 300 * kMiB) << named;
  }
}

}  // namespace
}  // namespace grus::cuda
