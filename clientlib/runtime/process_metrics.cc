// SPDX-License-Identifier: Apache-2.0
// AddProcessMetrics() of metrics.h: what Linux says about this process.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "clientlib/runtime/metrics.h"

namespace kube {
namespace {

// Fields of /proc/self/stat, numbered as in proc(5). Zero if the file cannot be read.
struct ProcessStat {
  double user_ticks = 0, system_ticks = 0;  // 14, 15
  double start_ticks = 0;                   // 22, after boot
  double resident_pages = 0;                // 24
};

ProcessStat ReadProcessStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  ProcessStat stat;
  // Field 2 is the name of the program in parentheses; it may hold blanks and parentheses itself.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return stat;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int place = 3; place <= 24 && fields >> field; ++place) {
    const double value = place == 3 ? 0 : std::strtod(field.c_str(), nullptr);
    if (place == 14) stat.user_ticks = value;
    if (place == 15) stat.system_ticks = value;
    if (place == 22) stat.start_ticks = value;
    if (place == 24) stat.resident_pages = value;
  }
  return stat;
}

double BootTime() {  // Seconds of the Unix epoch.
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  }
  return 0;
}

double OpenFiles() {
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  double count = 0;
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) ++count;
  return count > 0 ? count - 1 : 0;  // Without the one that reads the folder.
}

}  // namespace

void AddProcessMetrics(Registry& registry) {
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  const double started = BootTime() + ReadProcessStat().start_ticks / ticks_per_second;
  registry.AddCounterFunction("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", {}, {},
                              [ticks_per_second] {
                                const ProcessStat stat = ReadProcessStat();
                                return (stat.user_ticks + stat.system_ticks) / ticks_per_second;
                              });
  registry.AddGaugeFunction("process_resident_memory_bytes", "Resident memory size in bytes.", {}, {},
                            [page_bytes] { return ReadProcessStat().resident_pages * page_bytes; });
  registry.AddGaugeFunction("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", {},
                            {}, [started] { return started; });
  registry.AddGaugeFunction("process_open_fds", "Number of open file descriptors.", {}, {}, OpenFiles);
}

}  // namespace kube
