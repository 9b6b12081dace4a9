// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

namespace kube {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(Registry, ShowsFamiliesByNameWithHelpAndType) {
  Registry registry;
  registry.GetGauge("b_gauge", "A level.").Set(2.5);
  registry.GetCounter("a_total", "Things done.").Add(3);

  EXPECT_EQ(registry.Text(),
            "# HELP a_total Things done.\n"
            "# TYPE a_total counter\n"
            "a_total 3\n"
            "# HELP b_gauge A level.\n"
            "# TYPE b_gauge gauge\n"
            "b_gauge 2.5\n");
}

TEST(Registry, AFamilyHasOneSampleForEachSetOfLabels) {
  Registry registry;
  registry.GetCounter("x_total", "x", {"verb", "code"}, {"GET", "200"}).Add();
  registry.GetCounter("x_total", "x", {"verb", "code"}, {"PUT", "409"}).Add(2);
  registry.GetCounter("x_total", "x", {"verb", "code"}, {"GET", "200"}).Add();

  EXPECT_EQ(registry.Text(),
            "# HELP x_total x\n"
            "# TYPE x_total counter\n"
            "x_total{verb=\"GET\",code=\"200\"} 2\n"
            "x_total{verb=\"PUT\",code=\"409\"} 2\n");
}

TEST(Registry, EscapesLabelValuesAndHelp) {
  Registry registry;
  registry.GetGauge("g", "a \"b\" \\ c\nd", {"l"}, {"a \"b\" \\ c\nd"});

  EXPECT_EQ(registry.Text(),
            "# HELP g a \"b\" \\\\ c\\nd\n"
            "# TYPE g gauge\n"
            "g{l=\"a \\\"b\\\" \\\\ c\\nd\"} 0\n");
}

TEST(Registry, AHistogramIsCumulativeAndABoundBelongsToItsBucket) {
  Registry registry;
  Histogram& histogram = registry.GetHistogram("h_seconds", "h", {0.25, 1, 10}, {"l"}, {"v"});
  for (const double v : {0.25, 0.5, 1.0, 10.5}) histogram.Observe(v);

  EXPECT_EQ(registry.Text(),
            "# HELP h_seconds h\n"
            "# TYPE h_seconds histogram\n"
            "h_seconds_bucket{l=\"v\",le=\"0.25\"} 1\n"
            "h_seconds_bucket{l=\"v\",le=\"1\"} 3\n"
            "h_seconds_bucket{l=\"v\",le=\"10\"} 3\n"
            "h_seconds_bucket{l=\"v\",le=\"+Inf\"} 4\n"
            "h_seconds_sum{l=\"v\"} 12.25\n"
            "h_seconds_count{l=\"v\"} 4\n");
}

TEST(Registry, AHistogramWithoutLabelsHasOnlyLe) {
  Registry registry;
  registry.GetHistogram("h", "h", {1}).Observe(std::nan(""));
  EXPECT_THAT(registry.Text(), HasSubstr("h_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 1\nh_sum NaN\nh_count 1\n"));
}

TEST(Registry, WritesNumbersAsPrometheusReadsThem) {
  struct Case {
    double value;
    std::string want;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Case& c :
       {Case{0, "0"}, Case{-1.5, "-1.5"}, Case{0.1, "0.1"}, Case{infinity, "+Inf"}, Case{-infinity, "-Inf"},
        Case{std::nan(""), "NaN"}, Case{1e21, "1e+21"}, Case{1767323045.5, "1767323045.5"}}) {
    Registry registry;
    registry.GetGauge("g", "g").Set(c.value);
    EXPECT_THAT(registry.Text(), HasSubstr("\ng " + c.want + "\n"));
  }
}

TEST(Registry, AFunctionIsReadAtEachScrapeAndMayUseTheRegistry) {
  Registry registry;
  double depth = 1;
  registry.AddGaugeFunction("depth", "d", {"name"}, {"q"}, [&] {
    registry.GetCounter("scrapes_total", "s").Add();
    return depth;
  });
  registry.AddCounterFunction("adds_total", "a", {}, {}, [] { return 7.0; });

  EXPECT_THAT(registry.Text(), HasSubstr("depth{name=\"q\"} 1\n"));
  depth = 2;
  EXPECT_THAT(registry.Text(), HasSubstr("depth{name=\"q\"} 2\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("# TYPE adds_total counter\nadds_total 7\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("scrapes_total 4\n"));
}

TEST(Registry, ALaterFunctionForTheSameLabelsReplacesTheFirst) {
  Registry registry;
  registry.AddGaugeFunction("g", "g", {}, {}, [] { return 1.0; });
  registry.AddGaugeFunction("g", "g", {}, {}, [] { return 2.0; });
  EXPECT_THAT(registry.Text(), HasSubstr("\ng 2\n"));
}

TEST(Registry, AFamilyThatIsReadAtEachScrapeShowsWhatIsThereThen) {
  Registry registry;
  Registry::Samples samples = {{{"a", "x"}, 1}, {{"b", "y"}, 2.5}};
  registry.AddGaugeFamily("g", "g", {"k", "l"}, [&] { return samples; });

  EXPECT_THAT(registry.Text(), HasSubstr("# TYPE g gauge\ng{k=\"a\",l=\"x\"} 1\ng{k=\"b\",l=\"y\"} 2.5\n"));
  samples.pop_back();
  EXPECT_EQ(registry.Text(), "# HELP g g\n# TYPE g gauge\ng{k=\"a\",l=\"x\"} 1\n");
}

TEST(Registry, ACounterFamilyIsShownAsACounter) {
  Registry registry;
  registry.AddCounterFamily("c_total", "c", {"k"}, [] { return Registry::Samples{{{"a"}, 7}}; });

  EXPECT_EQ(registry.Text(), "# HELP c_total c\n# TYPE c_total counter\nc_total{k=\"a\"} 7\n");
}

TEST(Registry, CellsStayWhereTheyAre) {
  Registry registry;
  Counter& first = registry.GetCounter("x_total", "x", {"i"}, {"0"});
  for (int i = 1; i < 1000; ++i) registry.GetCounter("x_total", "x", {"i"}, {std::to_string(i)});
  EXPECT_EQ(&first, &registry.GetCounter("x_total", "x", {"i"}, {"0"}));
}

TEST(Registry, CountsFromManyThreadsWhileItIsScraped) {
  Registry registry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, t] {
      for (int i = 0; i < 1000; ++i) {
        registry.GetCounter("x_total", "x").Add();
        registry.GetHistogram("h", "h", {1}, {"t"}, {std::to_string(t)}).Observe(0.5);
      }
    });
  }
  for (int i = 0; i < 10; ++i) (void)registry.Text();
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(registry.GetCounter("x_total", "x").value(), 4000u);
  EXPECT_THAT(registry.Text(), HasSubstr("h_sum{t=\"3\"} 500\n"));
}

TEST(ProcessMetrics, AreThere) {
  Registry registry;
  AddProcessMetrics(registry);
  const std::string text = registry.Text();
  EXPECT_THAT(text, ContainsRegex("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total [0-9.]+\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_resident_memory_bytes [1-9][0-9e+.]+\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_start_time_seconds [1-9][0-9e+.]+\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_open_fds [1-9][0-9]*\n"));
}

}  // namespace
}  // namespace kube
