// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/utf8.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(Utf8, KnowsValidFromInvalid) {
  for (const char* text :
       {"", "a", "12345678", "123456789", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "1234567\xE2\x82\xAC"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(RepairUtf8(text), text);
  }
  for (const char* text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\x80", "\xE2\x82",
                           "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
                           "\xFF", "1234567\xE2\x82", "12345678\xFF"}) {
    EXPECT_FALSE(IsValidUtf8(text)) << text;
    EXPECT_TRUE(IsValidUtf8(RepairUtf8(text))) << text;
  }
}

}  // namespace
}  // namespace kube
