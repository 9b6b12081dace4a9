// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/list_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/core_v1.h"
#include "clientlib/testing/fake_clock.h"
#include "tests/clientlib/cache/map_answers.h"

namespace kube::testing {
namespace {

using ::testing::HasSubstr;

class ListPageTest : public ::testing::Test {
 protected:
  Result<ListPage> Read(const ListOptions& options = {}) {
    return ReadListPage(client_, KindOf<ConfigMap>(), "ns", options, {});
  }
  FakeClock clock_;
  FakeTransport transport_{clock_};
  Client client_{transport_, nullptr, clock_};
};

TEST_F(ListPageTest, AListThatCanBeReadIsOneRequest) {
  transport_.Expect("GET", "/api/v1/namespaces/ns/configmaps", ListAnswer("7", {MapText("a", "5")}));
  const Result<ListPage> page = Read();
  ASSERT_TRUE(page);
  EXPECT_EQ(page->readable.items.size(), 1u);
  EXPECT_EQ(transport_.requests().size(), 1u);
}

TEST_F(ListPageTest, L15AnotherRequestTellsWhatCannotBeRead) {
  for (int i = 0; i < 2; ++i) {
    transport_.Expect("GET", "/", ListAnswer("7", {Unreadable("bad", "5"), MapText("a", "6")}));
  }
  const Result<ListPage> page =
      Read({.label_selector = "a=b", .field_selector = "c=d", .resource_version = "3", .continue_token = "e"});

  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->readable.resource_version, "7");
  ASSERT_EQ(page->readable.items.size(), 1u);
  EXPECT_EQ(page->readable.items[0]->metadata.name, "a");
  ASSERT_EQ(page->unreadable.size(), 1u);
  EXPECT_EQ(page->unreadable[0].identity->metadata.Key(), (ObjectKey{"ns", "bad"}));
  ASSERT_EQ(transport_.requests().size(), 2u);
  EXPECT_EQ(transport_.requests()[1].target, transport_.requests()[0].target);
}

TEST_F(ListPageTest, OtherErrorsAreReturnedAtOnce) {
  transport_.Expect("GET", "/", StatusAnswer(403, "Forbidden", "configmaps is forbidden"));
  const Result<ListPage> page = Read();
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::kForbidden);
  EXPECT_EQ(transport_.requests().size(), 1u);
}

TEST_F(ListPageTest, WhatIsNoListIsAnError) {
  for (int i = 0; i < 2; ++i) transport_.Expect("GET", "/", JsonAnswer(200, "<html>"));
  const Result<ListPage> page = Read();
  ASSERT_FALSE(page);
  EXPECT_THAT(page.error().message(), HasSubstr("answer of the server"));
}

}  // namespace
}  // namespace kube::testing
