// SPDX-License-Identifier: Apache-2.0
#include "crds/types/co_run.h"

#include "crds/types/measurement.h"

namespace api {

using kube::Field;
using kube::FieldInfo;

std::span<const FieldInfo> CoRun::Fields() {
  using T = CoRun;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.doc = "Name of partner and GPU type; one entry for each.",
                               .required = true,
                               .min_length = 1,
                               .max_length = 128}),
      Field<&T::partner>("partner", {.doc = "Fingerprint of the workload that ran on the same GPUs: the name of its "
                                            "WorkloadProfile.",
                                     .required = true,
                                     .min_length = 1,
                                     .max_length = 63}),
      Field<&T::gpu_type>("gpuType", {.doc = "The GPU type; empty: it is not known.", .max_length = 63}),
      Field<&T::speed>("speed", {.doc = "Speed as a share of that with GPUs of its own: the mean of all samples.",
                                 .required = true,
                                 .pattern = kDecimalPattern}),
      Field<&T::low>("low", {.doc = "Low end of its 90 % interval. Missing: not known.", .pattern = kDecimalPattern}),
      Field<&T::high>("high", {.doc = "High end of it. Missing: not known.", .pattern = kDecimalPattern}),
      Field<&T::count>("count", {.doc = "Number of samples.", .required = true, .minimum = 1}),
      Field<&T::time>("time", {.doc = "When the last one was measured.", .required = true}),
  };
  return kFields;
}

}  // namespace api
