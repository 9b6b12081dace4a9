// SPDX-License-Identifier: Apache-2.0
// Rule: a container that has a part of a GPU, and nothing past it, gets all of that part whenever it asks for it,
// whatever others of that GPU have past theirs.
#include <algorithm>
#include <random>

#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

std::string Mib(std::uint64_t number) { return std::to_string(number * kMiB); }

// Of a GPU of 1,000 MiB one container has 400, and 700 past that; the other one has the remaining 600. Contexts of 10.
class PagedPromiseTest : public LimitedTest {
 protected:
  static constexpr std::uint64_t kPart = 600;
  void SetUp() override {
    Share({.gpus = {1000 * kMiB}, .context_bytes = 10 * kMiB, .is_virtual = true}, {400 * kMiB}, 0, 700 * kMiB);
    guaranteed_folder_ = std::make_unique<ShareFolder>(Path() + ".guaranteed");
    std::vector<ShareLimits> parts = parts_;
    parts[0].memory_bytes = kPart * kMiB;
    parts[0].paged_bytes = 0;
    ASSERT_TRUE(guaranteed_folder_->Make(parts, std::chrono::nanoseconds(1)));
    Restart();
  }
  void Restart() {
    paged_.reset();
    guaranteed_.reset();
    paged_ = Start();
    guaranteed_ = std::make_unique<fake::ClientProcess>(EnvironmentOf(*guaranteed_folder_));
  }
  // Whatever there is for it.
  void FillPaged() {
    paged_->Ask("start");
    for (const std::uint64_t piece : {390, 400, 290, 10, 1}) paged_->Ask("alloc " + Mib(piece));
    EXPECT_EQ(paged_->Ask("alloc 1"), "error 2");
    EXPECT_EQ(Counted(0), 400 * kMiB);
    EXPECT_EQ(Counted(1), 700 * kMiB);
  }
  std::uint64_t Guaranteed() const { return guaranteed_folder_->ReadAccount(1)->gpus[0].memory_bytes; }

  std::unique_ptr<ShareFolder> guaranteed_folder_;
  std::unique_ptr<fake::ClientProcess> paged_, guaranteed_;
};

TEST_F(PagedPromiseTest, ItsPartIsThereInEveryOrder) {
  // What the two do: fills all that it has, works, frees what it has; takes a piece of its part, all that is left.
  std::vector<std::string> steps = {"fill", "work", "piece", "work", "rest"};
  std::ranges::sort(steps);
  int orders = 0;
  do {
    if (std::ranges::find(steps, "piece") > std::ranges::find(steps, "rest")) continue;
    if (steps.front() == "work") continue;
    Restart();
    ASSERT_THAT(guaranteed_->Ask("start"), StartsWith("ok"));
    paged_->Ask("start");
    for (const std::string& step : steps) {
      const std::string when = step + " of " + ::testing::PrintToString(steps);
      if (step == "fill") FillPaged();
      if (step == "work") paged_->Get("launch us1");
      const int pieces = step == "piece" ? 19 : (step == "rest" ? 40 : 0);
      for (int i = 0; i < pieces; ++i) ASSERT_THAT(guaranteed_->Ask("alloc " + Mib(10)), StartsWith("ok")) << when;
      ASSERT_LE(world_->Used(0), 1000 * kMiB);
    }
    EXPECT_EQ(Guaranteed(), kPart * kMiB);
    EXPECT_EQ(world_->UsedBy(guaranteed_->pid(), 0), kPart * kMiB) << "and it lies on the GPU";
    EXPECT_EQ(guaranteed_->Ask("alloc 1"), "error 2");
    ++orders;
  } while (std::ranges::next_permutation(steps).found);
  EXPECT_GT(orders, 10);
}

TEST_F(PagedPromiseTest, AlsoAContextOfItsOwnComesWhileAllIsInUse) {
  FillPaged();
  EXPECT_EQ(paged_->Ask("launch us1"), "ok");
  EXPECT_EQ(world_->Used(0), 1000 * kMiB);
  EXPECT_THAT(guaranteed_->Ask("start"), StartsWith("ok"));
  EXPECT_THAT(guaranteed_->Ask("async " + Mib(288)), StartsWith("ok"));
  EXPECT_THAT(guaranteed_->Ask("create " + Mib(300)), StartsWith("ok"));
  EXPECT_THAT(guaranteed_->Ask("alloc " + Mib(2)), StartsWith("ok"));
  EXPECT_EQ(Guaranteed(), kPart * kMiB);
}

TEST_F(PagedPromiseTest, ItIsToldThatItsPartIsFreeWhateverLiesThere) {
  FillPaged();
  EXPECT_EQ(world_->Free(0), 0U);
  guaranteed_->Ask("start");
  EXPECT_EQ(guaranteed_->Ask("info"), "ok " + Mib(590) + " " + Mib(600));
}

TEST_F(PagedPromiseTest, ItsAllocationsNeverFailWithinItsPart) {
  std::mt19937 random(11);
  guaranteed_->Ask("start");
  paged_->Ask("start");
  std::vector<std::pair<std::string, std::uint64_t>> mine;
  std::vector<std::string> theirs;
  std::uint64_t used = 10;
  for (int i = 0; i < 1500; ++i) {
    const std::uint64_t size = 1 + random() % 200;
    switch (random() % 6) {
      case 0: {
        const std::string answer = guaranteed_->Ask("alloc " + Mib(size));
        ASSERT_EQ(answer.starts_with("ok"), used + size <= kPart) << "step " << i << ": " << answer;
        if (used + size > kPart) break;
        mine.emplace_back(answer.substr(3), size);
        used += size;
        break;
      }
      case 1:
        if (mine.empty()) break;
        EXPECT_EQ(guaranteed_->Ask("free " + mine.back().first), "ok");
        used -= mine.back().second;
        mine.pop_back();
        break;
      case 2: ASSERT_EQ(paged_->Ask("launch us1"), "ok"); break;
      case 3:
        if (theirs.empty()) break;
        std::swap(theirs[random() % theirs.size()], theirs.back());
        EXPECT_EQ(paged_->Ask("free " + theirs.back()), "ok");
        theirs.pop_back();
        break;
      default: {
        const std::string answer = paged_->Ask((random() % 2 == 0 ? "alloc " : "managed ") + Mib(size));
        if (answer.starts_with("ok")) theirs.push_back(answer.substr(3));
        else EXPECT_EQ(answer, "error 2");
      }
    }
    ASSERT_LE(world_->Used(0), 1000 * kMiB);
    ASSERT_LE(Counted(0), 400 * kMiB);
    ASSERT_LE(Counted(1), 700 * kMiB);
  }
  EXPECT_GT(Most(1), 500 * kMiB) << "little was paged, so that this says little";
}

}  // namespace
}  // namespace grus::cuda
