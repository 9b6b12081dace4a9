// SPDX-License-Identifier: Apache-2.0
// Names of the annotations of the original Alnair that grus writes for its tools.
#pragma once

namespace api {

inline constexpr char kAlnairPodPrefix[] = "alnair.centaurusinfra.io/";  // On pods: "max_cpu_util" follows, and others.
inline constexpr char kAlnairOwnerPrefix[] = "ai.centaurus.io/";         // On owners of pods: a pod's name follows.
// The UID of the object that they were written to: on a copy of it they say nothing.
inline constexpr char kAlnairOfAnnotation[] = "ai.centauruscloud.io/alnair-of";

}  // namespace api
