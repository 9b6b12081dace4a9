// SPDX-License-Identifier: Apache-2.0
// One life of a side: its programs started and at work, its manifests applied, measured, and all of it gone.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/queues/scenarios.h"

namespace bench {

class SideRun {
 public:
  // Logs go to build/bench-queues-LABEL-PROGRAM.log.
  SideRun(const MixWorld& world, const MixSide& side, std::string label)
      : world_(world), side_(side), label_(std::move(label)) {}
  ~SideRun() { TearDown(); }
  SideRun(const SideRun&) = delete;
  SideRun& operator=(const SideRun&) = delete;

  bool SetUp();     // False and a message if that does not succeed.
  bool TearDown();  // All jobs, too. Likewise.
  void MeasureFromHere();
  double CpuSeconds() const;  // Of all its programs, since MeasureFromHere().
  double PeakMemoryMib() const;

 private:
  bool AwaitAtWork(const MixProgram& program, kit::ChildProcess& process);
  bool Kubectl(const std::string& words);
  double AllCpuSeconds() const;

  const MixWorld& world_;
  const MixSide& side_;
  const std::string label_;
  std::vector<std::unique_ptr<kit::ChildProcess>> processes_;
  double cpu_before_ = 0;
  bool is_up_ = false;
};

}  // namespace bench
