// SPDX-License-Identifier: Apache-2.0
// Which GPUs a container gets that asks for N x 1000 thousandths, N of two or more: N of which nobody has a part. Pure.
//
// Those that are planned for it, if they are all free; of several that may be asking, the first that has such a plan
// decides, as for parts (gpu_chooser.h). Else free ones, by index, those that are planned for others last.
#pragma once

#include "nodeagent/sharing/gpu_chooser.h"

namespace grus {

// REQUIRES: IsForWholeGpus(). Error (kInvalidArgument): no such multiple, or not so many are free; names the amounts
// and what to do.
kube::Result<GpuChoice> ChooseWholeGpus(const ChooserView& view);

// How many whole GPUs a container asks for; 0: none, or not a multiple.
std::int64_t WholeGpusOf(const PartAsk& ask);

// How many the containers of the pod ask for that do not have them yet, without init containers.
std::int64_t WholeGpusAwaited(const ChooserView& view, const kube::ObjectKey& pod);

// Nobody has a part of it.
bool IsFree(const GpuRoom& gpu);
std::int64_t FreeGpus(const ChooserView& view);

// "1500 ai.centauruscloud.io/gpu-milli: ask for 1 to 1000, or for a multiple of 1000: whole GPUs"
kube::Error NoWholeGpus(std::int64_t milli);

}  // namespace grus
