// SPDX-License-Identifier: Apache-2.0
// What the logs of MPS say of faults. Reads what is new in them; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace grus {

// Whether a line of control.log or server.log says that a client, or the server with all its clients, has failed. The
// texts are not documented; these are recognised, in any case: "fatal" (as "Server encountered a fatal exception.
// Shutting down"), "exited with status N" with N other than 0, "killed by signal", a status "FAULT".
bool SaysFault(std::string_view line);

class MpsLog {
 public:
  // What is there already is old.
  explicit MpsLog(std::string folder);
  // Lines that say of faults, since the last call; at most 256 KiB of each file are read, the rest next time.
  std::vector<std::string> NewFaults();

 private:
  struct Read {
    std::uint64_t bytes = 0;
    std::string begun = {};  // The line that is not whole yet.
  };

  const std::string folder_;
  std::map<std::string, Read> read_;  // By the file's name.
};

}  // namespace grus
