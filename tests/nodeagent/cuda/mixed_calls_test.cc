// SPDX-License-Identifier: Apache-2.0
// The account is the driver's truth to the byte after many calls of all ways to allocate, by processes that are killed
// in the middle of them. GRUS_MIXED_CALLS: how many calls each of the eight processes makes in a round; 125000: a
// million.
#include <cstdlib>

#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

constexpr std::uint64_t kPoolPiece = 32 * kMiB;  // By which the fake's pools grow.

class MixedCallsTest : public LimitedTest {
 protected:
  static std::string Calls() {
    const char* const asked = std::getenv("GRUS_MIXED_CALLS");
    return asked != nullptr ? asked : "2000";
  }

  // Rounds of eight processes, of which four are killed.
  void Play() {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::unique_ptr<fake::ClientProcess>> clients;
      for (int i = 0; i < 8; ++i) clients.push_back(Start());
      for (auto& client : clients) ASSERT_THAT(client->Ask("start"), StartsWith("ok"));
      for (auto& client : clients) client->Tell("mixed " + std::to_string(client->pid()) + " " + Calls() + " 16777216");
      for (std::size_t i = 0; i < 4; ++i) clients[i]->Kill();
      for (std::size_t i = 4; i < clients.size(); ++i) EXPECT_THAT(clients[i]->Hear(), StartsWith("ok"));
      for (std::size_t i = 4; i < clients.size(); ++i) EXPECT_EQ(clients[i]->Ask("syncall"), "ok");
      EXPECT_EQ(clients.back()->Ask("alloc 1073741824"), "error 2") << "the dead are swept before that";
      const ShareLimits& limits = parts_.front();
      const std::uint64_t paged = limits.paged_bytes > 0 ? Counted(1) : 0;
      ASSERT_EQ(Counted() + paged, world_->Used(0) + world_->InHost(0)) << "round " << round;
      ASSERT_LE(Counted(), limits.memory_bytes);
      // A pool that grows by more than it was asked for is past the limit until the call returns, and refuses.
      ASSERT_LE(Most(), limits.memory_bytes + clients.size() * kPoolPiece);
    }
  }
};

TEST_F(MixedCallsTest, TheAccountIsTheDriversTruthAndWithinTheLimit) {
  Share({.context_bytes = 10 * kMiB}, {kGiB});
  Play();
}

TEST_F(MixedCallsTest, AlsoOfWhatIsPagedPastThePart) {
  Share({.gpus = {200 * kMiB}, .context_bytes = 2 * kMiB}, {120 * kMiB}, 0, 150 * kMiB);
  Play();
  EXPECT_LE(Most(1), 150 * kMiB);
  EXPECT_GT(Most(1), 100 * kMiB) << "little was paged, so that this says little";
  EXPECT_GT(Account(1).refused, 0U);
}

}  // namespace
}  // namespace grus::cuda
