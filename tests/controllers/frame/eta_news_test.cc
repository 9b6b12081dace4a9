// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/eta_news.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

TEST(EtaNews, AnEndThatMovesByTwoPercentAndHalfAMinuteIsNews) {
  const auto at = [](int seconds) {
    return std::optional(kube::Time{std::chrono::sys_seconds(std::chrono::seconds(seconds))});
  };
  const kube::Time now = *at(1000);
  struct Case {
    std::optional<kube::Time> before, after;
    bool is_news;
  };
  for (const Case& c : {
           Case{std::nullopt, std::nullopt, false}, Case{std::nullopt, at(2000), true},
           Case{at(2000), std::nullopt, true}, Case{at(2000), at(2000), false}, Case{at(2000), at(2029), false},
           Case{at(2000), at(2030), true}, Case{at(2000), at(1970), true}, Case{at(11000), at(11100), false},
           Case{at(11000), at(11300), true}, Case{at(1010), at(990), false},  // It is over.
       }) {
    EXPECT_EQ(IsEtaNews(c.before, c.after, now), c.is_news)
        << (c.before ? kube::ToText(*c.before) : "none") << " " << (c.after ? kube::ToText(*c.after) : "none");
  }
}

}  // namespace
}  // namespace grus
