// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/finalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/core_v1.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kOurs[] = "example.com/bucket";

class FinalizerTest : public ::testing::Test {
 protected:
  FinalizerTest() { Create(); }

  void Create() {
    Json object = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
    object["metadata"] = Json::MakeObject({{"name", "a"}, {"namespace", "default"}});
    ASSERT_TRUE(server_.Create("configmaps", std::move(object), "test"));
  }
  ObjectMeta Read() {
    const Result<Client::ObjectPtr> object = client_.Get(KindOf<ConfigMap>(), kKey);
    return object ? (*object)->metadata : ObjectMeta();
  }
  // By somebody else.
  void SetFinalizers(const std::vector<std::string>& finalizers) {
    Json list = Json::MakeArray();
    for (const std::string& finalizer : finalizers) list.Append(finalizer);
    const Json patch = Json::MakeObject(
        {{"metadata", Json::MakeObject({{"finalizers", finalizers.empty() ? Json() : list}})}});
    ASSERT_TRUE(client_.Patch(KindOf<ConfigMap>(), kKey, PatchType::kMerge, patch));
  }
  void Delete() { ASSERT_TRUE(client_.Delete(KindOf<ConfigMap>(), kKey)); }
  Result<Action> Pass(const ObjectMeta& object) {
    return ReconcileWithFinalizer(client_, KindOf<ConfigMap>(), object, kOurs,
                                  {.apply = [this]() -> Result<Action> {
                                     done_.push_back("apply");
                                     return Action::AwaitChange();
                                   },
                                   .cleanup = [this]() -> Status {
                                     done_.push_back("cleanup");
                                     return cleanup_;
                                   }});
  }

  const ObjectKey kKey{"default", "a"};
  FakeClock clock_;
  FakeApiServer server_{clock_};
  Client client_{server_, nullptr, clock_};
  Status cleanup_;
  std::vector<std::string> done_;
};

TEST_F(FinalizerTest, F1TheFinalizerIsThereBeforeTheFirstSideEffect) {
  ASSERT_TRUE(Pass(Read()));
  EXPECT_THAT(done_, IsEmpty());
  EXPECT_THAT(Read().finalizers, ElementsAre(kOurs));

  ASSERT_TRUE(Pass(Read()));
  EXPECT_THAT(done_, ElementsAre("apply"));
}

TEST_F(FinalizerTest, F1OfTwoThatAddNoneErasesTheOther) {
  for (const std::vector<std::string>& before : {std::vector<std::string>{}, {"example.com/first"}}) {
    SetFinalizers(before);
    const ObjectMeta seen = Read();
    SetFinalizers({"example.com/first", "example.com/second"});

    const Result<Action> late = Pass(seen);

    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), ErrorCode::kConflict);
    EXPECT_FALSE(late.error().is_terminal());
    EXPECT_THAT(late.error().message(), HasSubstr("add finalizer example.com/bucket ConfigMap default/a"));
    EXPECT_THAT(Read().finalizers, ElementsAre("example.com/first", "example.com/second"));
    ASSERT_TRUE(Pass(Read()));
    EXPECT_THAT(Read().finalizers, ElementsAre("example.com/first", "example.com/second", kOurs));
  }
}

TEST_F(FinalizerTest, F1OfTwoThatRemoveNoneErasesTheOther) {
  SetFinalizers({"example.com/first", kOurs, "example.com/last"});
  Delete();
  const ObjectMeta seen = Read();
  SetFinalizers({kOurs, "example.com/last"});

  const Result<Action> late = Pass(seen);

  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kConflict);
  EXPECT_THAT(Read().finalizers, ElementsAre(kOurs, "example.com/last"));
  ASSERT_TRUE(Pass(Read()));
  EXPECT_THAT(Read().finalizers, ElementsAre("example.com/last"));
}

TEST_F(FinalizerTest, F1ARecreatedObjectIsNotMistakenForTheOldOne) {
  const ObjectMeta old = Read();
  Delete();
  Create();

  const Result<Action> late = Pass(old);

  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kConflict);
  EXPECT_THAT(Read().finalizers, IsEmpty());
}

TEST_F(FinalizerTest, F2CleanupRunsAlthoughApplyNeverRan) {
  SetFinalizers({kOurs});
  Delete();

  ASSERT_TRUE(Pass(Read()));

  EXPECT_THAT(done_, ElementsAre("cleanup"));
  EXPECT_EQ(server_.Get("configmaps", kKey), nullptr);
}

TEST_F(FinalizerTest, F2AFailedCleanupKeepsTheFinalizer) {
  SetFinalizers({kOurs});
  Delete();
  cleanup_ = Error(ErrorCode::kUnavailable, "no bucket server");

  const Result<Action> failed = Pass(Read());

  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(),
            "clean up for finalizer example.com/bucket ConfigMap default/a: no bucket server");
  EXPECT_THAT(Read().finalizers, ElementsAre(kOurs));
}

TEST_F(FinalizerTest, F2AnObjectThatIsGoneIsASuccess) {
  const ObjectMeta without = Read();
  SetFinalizers({kOurs});
  Delete();
  const ObjectMeta ending = Read();
  SetFinalizers({});
  ASSERT_EQ(server_.Get("configmaps", kKey), nullptr);

  EXPECT_TRUE(Pass(without));
  EXPECT_TRUE(Pass(ending));

  EXPECT_EQ(server_.Get("configmaps", kKey), nullptr);
}

TEST_F(FinalizerTest, F2AfterItsCleanupAnObjectKeptByOthersIsLeftAlone) {
  SetFinalizers({"example.com/first"});
  Delete();

  ASSERT_TRUE(Pass(Read()));

  EXPECT_THAT(done_, IsEmpty());
  EXPECT_THAT(Read().finalizers, ElementsAre("example.com/first"));
}

}  // namespace
}  // namespace kube::testing
