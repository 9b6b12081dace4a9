// SPDX-License-Identifier: Apache-2.0
// Rule: memory that is made apart from its mappings counts until its last use, whatever other threads wait for.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class CreatedMemoryTest : public LimitedTest {
 protected:
  CreatedMemoryTest() {
    Share({}, {kGiB});
    client_ = Start();
    client_->Ask("start");
    handle_ = Text("create 2097152");
    address_ = Text("reserve 2097152");
  }
  std::string Text(const std::string& command) {
    const std::string answer = client_->Ask(command);
    EXPECT_THAT(answer, StartsWith("ok")) << command;
    return answer.size() > 3 ? answer.substr(3) : "";
  }

  std::unique_ptr<fake::ClientProcess> client_;
  std::string handle_, address_;
};

TEST_F(CreatedMemoryTest, OneThreadInTheDriverHoldsUpNoOther) {
  Text("map " + address_ + " 2097152 " + handle_);
  struct Held {
    std::string function, command;
  };
  for (const Held& held :
       {Held{"cuMemUnmap", "unmap " + address_ + " 2097152"},
        Held{"cuMemMap", "map " + address_ + " 2097152 " + handle_}, Held{"cuMemRelease", "drop " + handle_}}) {
    world_->HoldBefore(held.function);
    EXPECT_EQ(client_->Ask("beside " + held.command), "ok");
    world_->AwaitHeld();
    const std::string other = Text("create 2097152"), at = Text("reserve 2097152");
    Text("map " + at + " 2097152 " + other);
    Text("unmap " + at + " 2097152");
    Text("drop " + other);
    EXPECT_TRUE(world_->IsHeld()) << held.function;
    world_->LetGo();
    EXPECT_EQ(client_->Ask("join"), "ok") << held.function;
  }
  EXPECT_EQ(Counted(), 302 * kMiB) << "it is mapped";
  Text("unmap " + address_ + " 2097152");
  EXPECT_EQ(Counted(), 300 * kMiB);
}

TEST_F(CreatedMemoryTest, WhatFailsChangesNoUse) {
  for (const char* const function : {"cuMemMap", "cuMemRelease"}) world_->Fail(function, 1, 999);
  EXPECT_EQ(client_->Ask("map " + address_ + " 2097152 " + handle_), "error 999");
  EXPECT_EQ(client_->Ask("drop " + handle_), "error 999");
  EXPECT_EQ(Counted(), 302 * kMiB);
  Text("drop " + handle_);
  EXPECT_EQ(Counted(), 300 * kMiB);
}

TEST_F(CreatedMemoryTest, OutlivesContextsHoweverManyUsesItHas) {
  const std::string second = Text("reserve 2097152");
  Text("map " + address_ + " 2097152 " + handle_);
  Text("map " + second + " 2097152 " + handle_);
  // Uses are counted where contexts have their numbers.
  for (int i = 0; i < 5; ++i) Text("destroy " + Text("context"));
  EXPECT_EQ(Counted(), 302 * kMiB);
  EXPECT_EQ(Counted(), world_->Used(0));
}

TEST_F(CreatedMemoryTest, AnotherHandleOfAMappingIsAUse) {
  Text("map " + address_ + " 2097152 " + handle_);
  const std::string again = Text("handle " + address_);
  Text("drop " + handle_);
  Text("unmap " + address_ + " 2097152");
  EXPECT_EQ(Counted(), 302 * kMiB);
  Text("drop " + again);
  EXPECT_EQ(Counted(), 300 * kMiB);
}

}  // namespace
}  // namespace grus::cuda
