// SPDX-License-Identifier: Apache-2.0
// Lends the GPU time that some containers leave idle to those that want more. Pure: from what the containers of one GPU
// say they used and waited, to the rate that each may have until the next look (every 100 ms).
//
// Who was idle in the last look keeps its guaranteed rate, so that it can start at once, but that time is given to
// others, by weight (the guaranteed share), until it is seen busy again: so a second look at most ends a loan. Nobody's
// rate is below its guarantee.
//
// What containers charge themselves is wall time, and counts what others took in between in full. Where the timelines
// of two overlap, each got a part only; the rates are raised by as much, so that the shares are of work done, and the
// GPU is full. The rate of one that is idle is raised by what it will overlap once it wakes up; one that charged itself
// for a long launch overlaps all others until that time is over, as its timeline tells of the launch when it has ended.
//
// All that comes from a container may be a lie. A liar can look busy, and so keep its own share from being lent and get
// of what others leave idle; or idle, and so get no more than its guarantee. By a forged timeline, or a forged charge,
// it can raise its own rate, and that of those that work beside it, to at most what it would be times as many as are
// busy together. It cannot lower the rate of others below their guarantee.
//
// Not safe for threads. Time is a parameter.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace grus {

// One container's part of one GPU, as read from its account.
struct TimeUse {
  std::string container;                  // Its name, the same each time.
  std::uint32_t milli = 0;                // Guaranteed, in thousandths.
  std::uint64_t charged = 0, waited = 0;  // Sums, ns; see nodeagent/cuda/share_files.h.
  std::vector<std::uint32_t> busy;        // A copy of its timeline; empty: not known.
};

class Lending {
 public:
  // The rates in the order of `uses`, thousandths of wall time, 1 to 1,000. `now`: CLOCK_MONOTONIC, ns. All of one GPU.
  std::vector<std::uint32_t> Rates(std::uint64_t now, std::span<const TimeUse> uses);

 private:
  struct Seen {
    std::uint64_t charged = 0, waited = 0;
    std::uint64_t owed = 0;  // Charged ahead of time: a launch of 500 ms keeps a container busy for five looks.
    double worked = 1;       // The part of its wall time in which the GPU worked for it.
    bool is_new = true, was_idle = true;
  };
  std::map<std::string, Seen> seen_;
  std::uint64_t looked_ = 0;
};

// Shares out `total` by weight; nobody gets more than it wants.
std::vector<double> ShareOut(double total, std::span<const double> weights, std::span<const double> wants);

}  // namespace grus
