// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/printable.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(Printable, EscapesWhatControlsOrForgesAndNothingElse) {
  struct Case {
    std::string_view text, want;
  };
  for (const Case& c : {
           Case{"", ""},
           Case{"A100 80 GB \\ \"x\" \u00fc \u2501 \U0001f680 \u05d0",
                "A100 80 GB \\ \"x\" \u00fc \u2501 \U0001f680 \u05d0"},
           Case{"a\nb\r\tc", R"(a\nb\r\tc)"},
           Case{std::string_view("\0", 1), R"(\u0000)"},
           Case{"\x1b[31m", R"(\u001b[31m)"},
           Case{"\x7f\u0080\u0085\u009b\u009f\u00a0", "\\u007f\\u0080\\u0085\\u009b\\u009f\u00a0"},
           Case{"\u2027\u2028\u2029", "\u2027\\u2028\\u2029"},
           Case{"\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u206a",
                "\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069\u206a"},
           Case{"a\x9b\xffz\xe2\x80", R"(a\ufffd\ufffdz\ufffd\ufffd)"},
       }) {
    EXPECT_EQ(Printable(c.text), c.want);
    EXPECT_EQ(IsPrintable(c.text), c.text == c.want) << c.want;
    EXPECT_TRUE(IsPrintable(Printable(c.text))) << c.want;
  }
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(PrintableLines("a\x1b\n\nb\r\nc"), "a\\u001b\n\nb\\r\nc");
  EXPECT_EQ(PrintableLines("a\n"), "a\n");
  EXPECT_EQ(PrintableLines("\n"), "\n");
  EXPECT_EQ(PrintableLines(""), "");
}

TEST(Printable, QuotesWhatItIsTold) {
  std::string out = "[";
  AppendPrintable(out, "a\"b\\\n", "\"\\");
  EXPECT_EQ(out, R"([a\"b\\\n)");
}

}  // namespace
}  // namespace kube
