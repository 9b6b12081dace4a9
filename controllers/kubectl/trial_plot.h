// SPDX-License-Identifier: Apache-2.0
// kubectl grus trial plot: the curve of a TrialJob as a chart for each GPU type and batch size.
//
// As text: the charts, a table of all sizes with the source of each number, and the recommendations. As SVG: the charts
// one below the other.
//
// Pure: the object in, text out.
#pragma once

#include <string>

#include "clientlib/base/result.h"
#include "crds/types/trial_job.h"

namespace grus {

struct PlotSize {
  int width = 72, height = 20;  // Of a chart in characters.
};

// Error kNotFound: there is no curve yet; the message says what the TrialJob is doing.
kube::Result<std::string> PlotAsText(const api::TrialJob& trial, const PlotSize& size);
kube::Result<std::string> PlotAsSvg(const api::TrialJob& trial);

}  // namespace grus
