// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace kube {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Quantity Q(std::string_view text) {
  Result<Quantity> quantity = ParseQuantity(text);
  EXPECT_TRUE(quantity) << text;
  return quantity ? *quantity : Quantity();
}

TEST(Quantity, ValuesAndCanonicalText) {
  struct Case {
    const char* text;
    std::int64_t value, milli;
    const char* canonical;
  };
  const Case kCases[] = {
      {"0", 0, 0, "0"},
      {"-0", 0, 0, "0"},
      {"0Gi", 0, 0, "0"},
      {"8", 8, 8000, "8"},
      {"+8", 8, 8000, "8"},
      {"500m", 1, 500, "500m"},
      {"0.5", 1, 500, "500m"},
      {".5", 1, 500, "500m"},
      {"5.", 5, 5000, "5"},
      {"1.5", 2, 1500, "1500m"},
      {"-1.5", -2, -1500, "-1500m"},
      {"1500m", 2, 1500, "1500m"},
      {"2000m", 2, 2000, "2"},
      {"1e3", 1000, 1'000'000, "1e3"},
      {"1E3", 1000, 1'000'000, "1e3"},
      {"1.5e3", 1500, 1'500'000, "1500"},
      {"12e-1", 2, 1200, "1200e-3"},
      {"1E", 1'000'000'000'000'000'000, kMax, "1E"},
      {"1k", 1000, 1'000'000, "1k"},
      {"1000", 1000, 1'000'000, "1k"},
      {"1001", 1001, 1'001'000, "1001"},
      {"100M", 100'000'000, 100'000'000'000, "100M"},
      {"1Ki", 1024, 1'024'000, "1Ki"},
      {"1.5Gi", 1'610'612'736, 1'610'612'736'000, "1536Mi"},
      {"62.5Ki", 64'000, 64'000'000, "64000"},
      {"0.5Gi", 536'870'912, 536'870'912'000, "512Mi"},
      {"0.3Ki", 308, 307'200, "307200m"},
      {"1.1Ki", 1127, 1'126'400, "1126400m"},
      {"1000Ki", 1'024'000, 1'024'000'000, "1000Ki"},
      {"1023", 1023, 1'023'000, "1023"},
      {"64Gi", std::int64_t{64} << 30, (std::int64_t{64} << 30) * 1000, "64Gi"},
      {"1Ei", std::int64_t{1} << 60, kMax, "1Ei"},
      {"100n", 1, 1, "100n"},
      {"1u", 1, 1, "1u"},
      {"1.000000001", 2, 1001, "1000000001n"},
      {"0.0000000001", 1, 1, "1n"},
      {"-0.0000000001", -1, -1, "-1n"},
      {"1e-30", 1, 1, "1e-9"},
      {"1e-400000", 1, 1, "1e-9"},
      {"9223372036854775807", kMax, kMax, "9223372036854775807"},
      {"9223372036854775808", kMax, kMax, "9223372036854775807"},
      {"1e400", kMax, kMax, "9223372036854775807"},
      {"-1e400", -kMax, -kMax, "-9223372036854775807"},
      {"16Ei", kMax, kMax, "9223372036854775807"},
      {"100000E", kMax, kMax, "9223372036854775807"},
      {"99999999999999999999999999999999999999999999", kMax, kMax, "9223372036854775807"},
      {"0.99999999999999999999999999999999999999999999", 1, 1000, "1"},
      {"00000000000000000000000000000000000000000000000001", 1, 1000, "1"},
      {"99999999999999999999999999999Ei", kMax, kMax, "9223372036854775807"},
  };
  for (const Case& c : kCases) {
    const Quantity quantity = Q(c.text);
    EXPECT_EQ(quantity.Value(), c.value) << c.text;
    EXPECT_EQ(quantity.MilliValue(), c.milli) << c.text;
    EXPECT_EQ(ToText(quantity), c.canonical) << c.text;
    EXPECT_EQ(Q(ToText(quantity)), quantity) << c.text;
  }
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text :
       {"",    " ",     "a",  "1 ",  " 1",    "1K",   "1ki",  "1kI",  "1mi", "Gi",   "m",   ".",   "-",   "+",
        "--1", "1.2.3", "1e", "1e+", "1e1.5", "1e5k", "0x10", "1Gi1", "1,5", "1Mib", "NaN", "inf", "1EE", "1Zi"}) {
    const Result<Quantity> quantity = ParseQuantity(text);
    ASSERT_FALSE(quantity) << text;
    EXPECT_EQ(quantity.error().code(), ErrorCode::kDecode);
  }
}

TEST(Quantity, ComparesByValueWhateverTheForm) {
  EXPECT_EQ(Q("0.5"), Q("500m"));
  EXPECT_EQ(Q("1Gi"), Q("1073741824"));
  EXPECT_EQ(Q("1e3"), Q("1k"));
  EXPECT_EQ(Q("1.10"), Q("1.1"));
  EXPECT_LT(Q("999m"), Q("1"));
  EXPECT_GT(Q("1Gi"), Q("1G"));
  EXPECT_LT(Q("-1"), Q("1n"));
  EXPECT_LT(Q("9223372036854775806"), Q("1e400"));
  EXPECT_GT(Q("9223372036854775807"), Q("1n"));
}

TEST(Quantity, AddsExactlyAndSaturates) {
  EXPECT_EQ(Q("1.5") + Q("500m"), Q("2"));
  EXPECT_EQ(Q("1Gi") - Q("512Mi"), Q("512Mi"));
  EXPECT_EQ(ToText(Q("1Gi") + Q("512Mi")), "1536Mi");
  EXPECT_EQ(Q("1") - Q("1n"), Q("999999999n"));
  EXPECT_EQ((Q("1e400") + Q("1")).Value(), kMax);
  EXPECT_EQ((Quantity() - Q("1e400") - Q("1")).Value(), -kMax);
  EXPECT_EQ(Quantity(std::numeric_limits<std::int64_t>::min()).Value(), -kMax);
}

TEST(Quantity, IsMadeFromNumbers) {
  EXPECT_EQ(Quantity(8), Q("8"));
  EXPECT_EQ(Quantity::OfMilli(1500), Q("1.5"));
  EXPECT_EQ(ToText(Quantity(std::int64_t{1} << 30, Quantity::Format::kBinarySi)), "1Gi");
  EXPECT_DOUBLE_EQ(Q("1500m").AsDouble(), 1.5);
}

}  // namespace
}  // namespace kube
