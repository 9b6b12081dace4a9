// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "clientlib/http/curl_transport.h"

namespace bench {

double SecondsSince(kube::TimePoint start, const kube::Clock& clock) {
  return std::chrono::duration<double>(clock.Now() - start).count();
}

double Percentile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(p * static_cast<double>(sorted.size())))];
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Percentile(values, 0.5);
}

void PrintRow(const std::string& what, double value, const char* unit, double limit) {
  std::printf("%-58s %9.3f %-8s at most %7.3f   %s\n", what.c_str(), value, unit, limit,
              value <= limit ? "met" : "NOT MET");
}

void PrintRow(const std::string& what, double value, const char* unit) {
  std::printf("%-58s %9.3f %s\n", what.c_str(), value, unit);
}

bool InParallel(int count, int threads, const std::function<kube::Status(int)>& task) {
  std::atomic<int> next = 0;
  std::atomic<bool> is_ok = true;
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < std::min(threads, count); ++t) {
      running.emplace_back([&] {
        for (int i = next++; i < count && is_ok; i = next++) {
          if (kube::Status done = task(i); !done) {
            std::fprintf(stderr, "%s\n", done.error().message().c_str());
            is_ok = false;
          }
        }
      });
    }
  }
  return is_ok;
}

std::vector<std::string> ReadMetrics(kube::Transport& transport, const std::string& prefix) {
  kube::HttpRequest request;
  request.target = "/metrics";
  auto response = transport.Send(request, {});
  std::vector<std::string> found;
  if (!response) return found;
  std::istringstream lines(response->body);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(prefix, 0) == 0) found.push_back(line);
  }
  return found;
}

double MetricValue(const std::string& line) { return std::atof(line.c_str() + line.rfind(' ')); }

std::vector<std::string> ReadProgramMetrics(int port, const std::string& prefix) {
  kube::TransportOptions options;
  options.server = "http://127.0.0.1:" + std::to_string(port);
  static const kube::SystemClock clock;
  auto transport = kube::CurlTransport::Create(options, clock);
  return transport ? ReadMetrics(**transport, prefix) : std::vector<std::string>();
}

ManagerCounters ScrapeManager(int port) {
  ManagerCounters counters;
  for (const std::string& line : ReadProgramMetrics(port, "rest_client_requests_total{")) {
    counters.requests += MetricValue(line);
    const bool is_lease = line.find("method=\"PUT\"") != std::string::npos;  // It puts nothing else.
    const bool is_read = line.find("method=\"GET\"") != std::string::npos;
    if (!is_read && !is_lease) counters.writes += MetricValue(line);
  }
  return counters;
}

}  // namespace bench
