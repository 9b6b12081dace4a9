// SPDX-License-Identifier: Apache-2.0
// Reads the figures of benches, and prints them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"
#include "clientlib/http/transport.h"

namespace bench {

double SecondsSince(kube::TimePoint start, const kube::Clock& clock);

double Percentile(const std::vector<double>& sorted, double p);  // 0 if there are none.
double Median(std::vector<double> values);

// One line of a table: "... met" or "... NOT MET".
void PrintRow(const std::string& what, double value, const char* unit, double limit);
void PrintRow(const std::string& what, double value, const char* unit);  // Without a limit.

// Calls `task` with 0 to count - 1 from this many threads, each of which takes the next number, and waits for them.
// After an error no further number is begun. False and a message on standard error if there was one.
bool InParallel(int count, int threads, const std::function<kube::Status(int)>& task);

// The lines of `transport`'s /metrics that begin with `prefix`; none if there is no answer.
std::vector<std::string> ReadMetrics(kube::Transport& transport, const std::string& prefix);
double MetricValue(const std::string& line);
// The same of a program's /metrics, at that port of 127.0.0.1.
std::vector<std::string> ReadProgramMetrics(int port, const std::string& prefix);

// grus-manager's own counters, from the /metrics at that port of 127.0.0.1.
struct ManagerCounters {
  double requests = 0, writes = 0;
};
ManagerCounters ScrapeManager(int port);

}  // namespace bench
