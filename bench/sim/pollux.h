// SPDX-License-Identifier: Apache-2.0
// grus-sim pollux: how soon jobs of a workload of the Pollux paper are complete under a policy.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>

namespace grus {

inline constexpr char kPolluxHelp[] =
    "grus-sim pollux --workload FILE.csv --traces FOLDER --policy grus|tiresias\n"
    "                [--adaptive] [--curves measured|none] [--curve-error PERCENT] [--seed S]\n"
    "                [--start-seconds N] [--restart-seconds N] [--draw JOBS]\n"
    "                [--policy-speedup N]\n"
    "    plays the jobs of a workload, elastic trainings, on 16 nodes of 4 GPUs. grus knows the speeds that were\n"
    "    measured of a job (curves measured), wrong by PERCENT at each size if told, drawn from the seed (1 unless\n"
    "    told); or only those the job has had in the replay (curves none). tiresias gives each job the GPUs it asks "
    "for.\n"
    "    adaptive: each job trains with the batch size of most goodput on its GPUs, and its curves are of goodput.\n"
    "    A job stands still for 30 s after its start and after each change of size, unless told otherwise.\n"
    "    policy-speedup: grus sees times that are N times shorter, as grus-manager does in scripts/bench-live.\n"
    "    draw: plays that many jobs drawn from the workload at times drawn from it, by the seed: a workload like it.\n"
    "    The last line is JSON: avg_jct_s, p99_jct_s, makespan_s, restarts_a_job.\n";

// Results go to `out`, errors as one line to `error`. Returns the exit status: 0, or 2 if arguments or files are wrong.
int RunPollux(std::span<const std::string_view> arguments, std::ostream& out, std::ostream& error);

}  // namespace grus
