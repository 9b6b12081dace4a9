// SPDX-License-Identifier: Apache-2.0
// What the fake driver charges for memory that is not plain, and when it is given back.
#include <gmock/gmock.h>

#include "tests/nodeagent/cuda/fake/fake_test.h"

namespace grus::cuda::fake {
namespace {

using ::testing::StartsWith;

constexpr std::uint64_t kContext = 300 * kMiB;

std::string Text(std::uint64_t number) { return std::to_string(number); }

// A client with a context, and a world without anything else.
class FakeMemoryTest : public FakeTest {
 protected:
  FakeMemoryTest() { client.Get("start"); }

  std::uint64_t Used() { return world.Used(0) - kContext; }
  std::string Ask(const std::string& command) { return client.Ask(command); }
  std::uint64_t Get(const std::string& command) { return client.Get(command); }

  FakeWorld world{Path(), {.gpus = {1024 * kMiB}}};
  ClientProcess client{{world.Environment()}};
};

TEST_F(FakeMemoryTest, MemoryIsCreatedWithoutAContextAndOnTheGpuThatIsNamed) {
  FakeWorld two(Path() + "2", {.gpus = {1024 * kMiB, 1024 * kMiB}});
  ClientProcess other({two.Environment()});
  other.Get("init");
  other.Get("create " + Text(4 * kMiB) + " 1");

  EXPECT_EQ(two.Used(0), 0U);
  EXPECT_EQ(two.Used(1), 4 * kMiB);
}

TEST_F(FakeMemoryTest, CreatedMemoryIsOfWholePiecesAndOnlyThatOfTheGpuCounts) {
  EXPECT_EQ(Ask("create 1000"), "error 1");
  EXPECT_THAT(Ask("create " + Text(4 * kMiB) + " 0 2"), StartsWith("ok"));
  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Ask("create " + Text(726 * kMiB)), "error 2");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, MappedMemoryOutlivesItsHandleAndGoesWithTheLastOfBoth) {
  const std::string handle = Text(Get("create " + Text(2 * kMiB))), at = Text(Get("reserve " + Text(4 * kMiB)));
  const std::string bytes = " " + Text(2 * kMiB);

  EXPECT_EQ(Ask("map " + at + bytes + " " + handle), "ok");
  EXPECT_EQ(Ask("access " + at + bytes), "ok");
  EXPECT_EQ(Ask("drop " + handle), "ok");
  EXPECT_EQ(Used(), 2 * kMiB);
  const std::string again = Text(Get("handle " + at));
  EXPECT_EQ(Ask("unmap " + at + bytes), "ok");
  EXPECT_EQ(Used(), 2 * kMiB);
  EXPECT_EQ(Ask("drop " + again), "ok");
  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Ask("drop " + again), "error 1");
}

TEST_F(FakeMemoryTest, TheLastUnmapFreesMemoryThatIsMappedTwice) {
  const std::string handle = Text(Get("create " + Text(2 * kMiB)));
  const std::uint64_t at = Get("reserve " + Text(4 * kMiB));
  const std::string bytes = " " + Text(2 * kMiB);
  Ask("map " + Text(at) + bytes + " " + handle);
  Ask("map " + Text(at + 2 * kMiB) + bytes + " " + handle);
  Ask("drop " + handle);

  EXPECT_EQ(Ask("unmap " + Text(at) + bytes), "ok");
  EXPECT_EQ(Used(), 2 * kMiB);
  EXPECT_EQ(Ask("unmap " + Text(at + 2 * kMiB) + bytes), "ok");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, OnlyReservedAndFreeAddressesCanBeMapped) {
  const std::string handle = Text(Get("create " + Text(2 * kMiB))), at = Text(Get("reserve " + Text(2 * kMiB)));
  const std::string bytes = " " + Text(2 * kMiB);

  EXPECT_EQ(Ask("map 4096" + bytes + " " + handle), "error 1");
  EXPECT_EQ(Ask("map " + at + bytes + " " + handle), "ok");
  EXPECT_EQ(Ask("map " + at + bytes + " " + handle), "error 205");
  EXPECT_EQ(Ask("unreserve " + at + bytes), "error 1");
  EXPECT_EQ(Ask("unmap " + at + " 4096"), "error 1");
  EXPECT_EQ(Ask("unmap " + at + bytes), "ok");
  EXPECT_EQ(Ask("unreserve " + at + bytes), "ok");
  EXPECT_EQ(Ask("access " + at + bytes), "error 1");
}

TEST_F(FakeMemoryTest, WhoCreatedMemoryPaysUntilTheLastProcessHasLetGoOfIt) {
  ClientProcess other({world.Environment()});
  other.Get("init");
  const std::string handle = Text(Get("create " + Text(2 * kMiB))), descriptor = Text(Get("export " + handle));
  const std::string taken =
      Text(other.Get("take " + Text(static_cast<std::uint64_t>(client.pid())) + " " + descriptor));
  const std::string imported = Text(other.Get("import " + taken));
  other.Ask("close " + taken);
  Ask("close " + descriptor);
  Ask("drop " + handle);
  Get("info");

  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext + 2 * kMiB);
  EXPECT_EQ(world.UsedBy(other.pid(), 0), 0U);
  EXPECT_EQ(other.Ask("drop " + imported), "ok");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, AnExportedDescriptorKeepsMemory) {
  const std::string handle = Text(Get("create " + Text(2 * kMiB))), descriptor = Text(Get("export " + handle));
  Ask("drop " + handle);

  EXPECT_EQ(Used(), 2 * kMiB);
  const std::string again = Text(Get("import " + descriptor));
  Ask("close " + descriptor);
  Get("info");  // The driver looks when it is called.
  EXPECT_EQ(Used(), 2 * kMiB);
  EXPECT_EQ(Ask("drop " + again), "ok");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, TheDeathOfTheOnlyImporterOrOfTheOwnerFreesMemory) {
  const std::string pid = Text(static_cast<std::uint64_t>(client.pid()));
  for (const bool owner_dies : {false, true}) {
    ClientProcess other({world.Environment()});
    other.Get("init");
    const std::string handle = Text(Get("create " + Text(2 * kMiB))), descriptor = Text(Get("export " + handle));
    const std::string taken = Text(other.Get("take " + pid + " " + descriptor));
    other.Get("import " + taken);
    other.Ask("close " + taken);
    Ask("close " + descriptor);
    Ask("drop " + handle);
    Get("info");
    ASSERT_EQ(Used(), 2 * kMiB);
    (owner_dies ? client : other).Kill();
    EXPECT_EQ(world.Used(0), owner_dies ? 0 : kContext);
  }
}

TEST_F(FakeMemoryTest, APoolGrowsByChunksAndShrinksWhenAStreamIsWaitedFor) {
  const std::string first = Text(Get("async 1000000")), second = Text(Get("async " + Text(32 * kMiB)));
  const std::string pool = Text(Get("defaultpool"));

  EXPECT_EQ(Used(), 64 * kMiB);
  EXPECT_EQ(Get("poolget " + pool + " 5"), 64 * kMiB);
  EXPECT_EQ(Get("poolget " + pool + " 7"), 1000448 + 32 * kMiB);
  EXPECT_EQ(Ask("freeasync " + second), "ok");
  EXPECT_EQ(Used(), 64 * kMiB);
  EXPECT_EQ(Ask("sync"), "ok");
  EXPECT_EQ(Used(), 32 * kMiB);
  EXPECT_EQ(Ask("free " + first), "ok");
  EXPECT_EQ(Ask("syncall"), "ok");
  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Get("poolget " + pool + " 6"), 64 * kMiB);
}

TEST_F(FakeMemoryTest, APoolKeepsWhatItsThresholdAllowsUntilItIsTrimmed) {
  const std::string pool = Text(Get("defaultpool"));
  Ask("threshold " + pool + " 0xffffffffffffffff");
  Ask("freeasync " + Text(Get("async " + Text(64 * kMiB))));
  Ask("sync");

  EXPECT_EQ(Used(), 64 * kMiB);
  EXPECT_EQ(Ask("trim " + pool + " " + Text(32 * kMiB)), "ok");
  EXPECT_EQ(Used(), 32 * kMiB);
  EXPECT_EQ(Ask("trim " + pool + " 0"), "ok");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, APoolForWhichThereIsNoRoomRefuses) {
  EXPECT_EQ(Ask("async " + Text(725 * kMiB)), "error 2");
  EXPECT_EQ(Used(), 0U);
  const std::string pool = Text(Get("pool 0 1 " + Text(64 * kMiB)));
  EXPECT_EQ(Ask("frompool " + pool + " " + Text(65 * kMiB)), "error 2");
  EXPECT_THAT(Ask("frompool " + pool + " " + Text(64 * kMiB)), StartsWith("ok"));
}

TEST_F(FakeMemoryTest, APoolThatIsDestroyedLivesUntilItsLastAllocationIsFreed) {
  const std::string pool = Text(Get("pool")), pointer = Text(Get("frompool " + pool + " 1000"));

  EXPECT_EQ(Ask("destroypool " + pool), "ok");
  EXPECT_EQ(Used(), 32 * kMiB);
  EXPECT_EQ(Ask("frompool " + pool + " 1000"), "error 1");
  EXPECT_EQ(Ask("freeasync " + pointer), "ok");
  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Ask("destroypool " + Text(Get("defaultpool"))), "error 1");
}

TEST_F(FakeMemoryTest, ThePoolThatIsSetIsAllocatedFromAndOneOfTheHostCostsNothing) {
  const std::string host = Text(Get("pool 0 2")), pool = Text(Get("pool"));

  EXPECT_THAT(Ask("frompool " + host + " 1000"), StartsWith("ok"));
  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Ask("setpool " + pool), "ok");
  Get("async 512");
  EXPECT_EQ(Get("poolget " + pool + " 7"), 512U);
}

TEST_F(FakeMemoryTest, AContextThatEndsTakesWhatWasAllocatedInOrderToo) {
  Ask("threshold " + Text(Get("defaultpool")) + " 0xffffffffffffffff");
  Get("async 1000");
  Ask("reset");

  EXPECT_EQ(world.Used(0), 0U);
}

TEST_F(FakeMemoryTest, ArraysTakeTheirElementsAndSparseOnesNothing) {
  const std::string flat = Text(Get("array 128 2"));
  EXPECT_EQ(Used(), 1024U);
  const std::string deep = Text(Get("array3d 128 2 3"));
  EXPECT_EQ(Used(), 1024U + 3072);
  const std::string mipmap = Text(Get("mipmap 128 2 1 3"));  // 256, 64 and 32 elements.
  EXPECT_EQ(Used(), 1024U + 3072 + 1536);
  const std::string deferred = Text(Get("array3d 128 2 0 0x80"));
  Get("array3d 128 2 0 0x40");
  EXPECT_EQ(Used(), 1024U + 3072 + 1536);

  EXPECT_EQ(Get("arraysize " + deferred), 65536U);
  EXPECT_EQ(Ask("arraysize " + flat), "error 1");
  EXPECT_EQ(Ask("free " + flat), "error 1");
  EXPECT_EQ(Ask("freearray " + flat), "ok");
  EXPECT_EQ(Ask("freearray " + flat), "error 400");
  EXPECT_EQ(Ask("freearray " + deep), "ok");
  EXPECT_EQ(Ask("freemipmap " + mipmap), "ok");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, PlainMemoryOfAnotherProcessIsOpenedAtItsCost) {
  ClientProcess other({world.Environment()});
  other.Get("start");
  const std::string pointer = Text(Get("alloc 512")), answer = Ask("share " + pointer);
  ASSERT_THAT(answer, StartsWith("ok "));
  const std::string open = "open " + answer.substr(3);

  EXPECT_EQ(Ask(open), "error 201");
  const std::string opened = Text(other.Get(open));
  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext + 512);
  EXPECT_EQ(world.UsedBy(other.pid(), 0), kContext);
  EXPECT_EQ(other.Ask("free " + opened), "error 1");
  EXPECT_EQ(other.Ask("closeipc " + opened), "ok");
  EXPECT_EQ(other.Ask("closeipc " + opened), "error 1");
  Ask("free " + pointer);
  EXPECT_EQ(other.Ask(open), "error 400");
  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext);
}

TEST_F(FakeMemoryTest, AGraphTakesItsMostWhenItIsLaunchedAndKeepsItUntilItIsTrimmed) {
  const std::string graph = Text(Get("graph")), first = Text(Get("addalloc " + graph + " " + Text(40 * kMiB)));
  Get("addfree " + graph + " " + first);
  const std::string second = Text(Get("addalloc " + graph + " " + Text(10 * kMiB)));
  Get("addfree " + graph + " " + second);
  const std::string exec = Text(Get("instantiate " + graph));

  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Ask("launchgraph " + exec + " 3"), "ok");
  EXPECT_EQ(Used(), 64 * kMiB);
  EXPECT_EQ(Get("graphget 0"), 0U);
  EXPECT_EQ(Get("graphget 1"), 40 * kMiB);
  EXPECT_EQ(Get("graphget 2"), 64 * kMiB);
  EXPECT_EQ(Ask("endexec " + exec), "ok");
  EXPECT_EQ(Used(), 64 * kMiB);
  EXPECT_EQ(Ask("trimgraph"), "ok");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, WhatAGraphDoesNotFreeMustBeFreedBeforeItIsLaunchedAgain) {
  const std::string graph = Text(Get("graph")), pointer = Text(Get("addalloc " + graph + " " + Text(10 * kMiB)));
  const std::string exec = Text(Get("instantiate " + graph)), freeing = Text(Get("instantiate " + graph + " 1"));

  EXPECT_EQ(Ask("launchgraph " + exec), "ok");
  EXPECT_EQ(Get("graphget 0"), 10 * kMiB);
  EXPECT_EQ(Ask("trimgraph"), "ok");
  EXPECT_EQ(Used(), 32 * kMiB);
  EXPECT_EQ(Ask("launchgraph " + exec), "error 1");
  EXPECT_EQ(Ask("launchgraph " + freeing + " 2"), "ok");
  EXPECT_EQ(Get("graphget 0"), 10 * kMiB);
  EXPECT_EQ(Ask("freeasync " + pointer), "ok");
  EXPECT_EQ(Ask("launchgraph " + exec), "ok");
}

TEST_F(FakeMemoryTest, AGraphForWhichThereIsNoRoomIsNotLaunched) {
  const std::string graph = Text(Get("graph"));
  Get("addalloc " + graph + " " + Text(800 * kMiB));
  const std::string exec = Text(Get("instantiate " + graph));

  EXPECT_EQ(Ask("launchgraph " + exec), "error 2");
  EXPECT_EQ(Ask("upload " + exec), "error 2");
  EXPECT_EQ(Used(), 0U);
}

TEST_F(FakeMemoryTest, WhatIsAllocatedInACaptureIsTheGraphs) {
  const std::string stream = Text(Get("stream"));
  Ask("capture " + stream);
  const std::string pointer = Text(Get("async " + Text(40 * kMiB) + " " + stream));
  Ask("freeasync " + pointer + " " + stream);
  const std::string graph = Text(Get("endcapture " + stream));

  EXPECT_EQ(Ask("nodes " + graph), "ok 10 11");
  EXPECT_EQ(Used(), 0U);
  EXPECT_EQ(Ask("launchgraph " + Text(Get("instantiate " + graph)) + " 1 " + stream), "ok");
  EXPECT_EQ(Used(), 64 * kMiB);
}

}  // namespace
}  // namespace grus::cuda::fake
