// SPDX-License-Identifier: Apache-2.0
// The command line of kubectl grus interference fit.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>

namespace grus {

inline constexpr const char* kInterferenceFitUsage =
    "kubectl grus interference fit (--points FILE | --model FILE) [--predict FILE] [--save FILE]\n"
    "    predicts how fast jobs are beside others on one GPU, as shares of their solo speeds, from co-runs in a "
    "file.\n";

boost::program_options::options_description InterferenceFitOptions();

int InterferenceFit(const boost::program_options::variables_map& values, std::ostream& out, std::ostream& error);

}  // namespace grus
