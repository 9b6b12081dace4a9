// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/lower_case.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(LowerCase, ChangesTheLettersOfAsciiOnly) {
  EXPECT_EQ(LowerCase("NodeNames AZ az [@`{ \xC3\x84"), "nodenames az az [@`{ \xC3\x84");
  EXPECT_EQ(LowerCase('Z'), 'z');
  EXPECT_EQ(LowerCase('['), '[');
  EXPECT_EQ(LowerCase(std::string_view()), "");
}

TEST(LowerCase, OfTheFirstLetterAlone) {
  EXPECT_EQ(LowerFirst("Not A Directory"), "not A Directory");
  EXPECT_EQ(LowerFirst(""), "");
}

}  // namespace
}  // namespace kube
