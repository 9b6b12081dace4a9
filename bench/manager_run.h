// SPDX-License-Identifier: Apache-2.0
// One life of grus-manager beside a bench: started, ready, measured, stopped.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "clientlib/base/clock.h"
#include "tests/kit/child_process.h"

namespace bench {

class ManagerRun {
 public:
  // `program` runs with `arguments`, on ports that were free a moment ago; its log goes to `log_path`.
  ManagerRun(const std::string& program, std::vector<std::string> arguments, const std::string& log_path,
             const kube::Clock& clock);
  ~ManagerRun() { process_->Terminate(); }

  bool WaitUntilReady(kube::TimePoint until);  // Its caches are filled. Says so if it does not come to that.
  bool IsRunning() { return process_->IsRunning(); }
  // Until it used no CPU for `quiet`, or `until`.
  bool WaitUntilQuiet(kube::Duration quiet, kube::TimePoint until);
  ManagerCounters Counters() const { return ScrapeManager(metrics_port_); }
  // Lines of its /metrics that begin so.
  std::vector<std::string> Metrics(const std::string& prefix) const {
    return ReadProgramMetrics(metrics_port_, prefix);
  }
  const kit::ChildProcess& process() const { return *process_; }

 private:
  const kube::Clock& clock_;
  const int metrics_port_, health_port_;
  std::unique_ptr<kit::ChildProcess> process_;
};

// Lets so much time pass: for measuring over time, not for waiting on something.
void LetPass(kube::Duration time, const kube::Clock& clock);

}  // namespace bench
