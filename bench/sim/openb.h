// SPDX-License-Identifier: Apache-2.0
// grus-sim openb: how much of a cluster's GPUs a policy allocates, on Alibaba's trace of shared GPUs.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>

namespace grus {

inline constexpr char kOpenbHelp[] =
    "grus-sim openb --nodes FILE.csv --pods FILE.csv --policy grus|planner|fgd|bestfit [--seed S] [--ties "
    "random|name]\n"
    "    packs pods that ask for parts of GPUs, and for whole ones, into a cluster until they have asked for 130 %\n"
    "    of it. Seed 1 unless told. Ties, which of the nodes with the best score a pod gets: a random one (grus), or\n"
    "    the first by name, with names drawn anew for each seed as in the published runs (fgd, bestfit). planner is\n"
    "    grus-manager's own ledger and planner of gangs, with each GPU by its name, and takes no --ties.\n"
    "    The last line is JSON: policy, ties, seed, arrived, placed, allocated_percent_100, allocated_percent_130.\n";

// Results go to `out`, errors as one line to `error`. Returns the exit status: 0, or 2 if arguments or files are wrong.
int RunOpenb(std::span<const std::string_view> arguments, std::ostream& out, std::ostream& error);

}  // namespace grus
