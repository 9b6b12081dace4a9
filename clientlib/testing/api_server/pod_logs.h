// SPDX-License-Identifier: Apache-2.0
// What containers have logged, and GET pods/NAME/log: the API server's checks and the kubelet's answers. The server's
// lock is held, except in the streams.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "clientlib/http/transport.h"
#include "clientlib/testing/api_server/request.h"
#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// A runtime's log file of one container. Streams keep theirs after the pod, or the server, is gone.
struct ContainerLog {
  struct Record {
    WallTime at;
    std::string text;  // A line with its end, or a part of one.
  };
  std::deque<Record> records;
  std::uint64_t first = 0;  // The number of the first of `records`: earlier ones were rotated away.
  bool is_ended = false;    // The container has ended; nothing more comes.
  std::uint64_t breaks = 0;
  CondVar changed;
};

class PodLogs {
 public:
  PodLogs(Storage& storage, const Clock& clock);

  // No effect if there is no such pod.
  void Append(const ObjectKey& pod, std::string_view container, WallTime at, std::string_view text);
  void Rotate(const ObjectKey& pod, std::string_view container, std::size_t records);
  void BreakStreams();

  Outcome<StreamResponse> Answer(Table& pods, const ObjectKey& pod, const HttpRequest& request, const Target& target);

 private:
  using LogPtr = std::shared_ptr<ContainerLog>;
  LogPtr LogOf(const ObjectKey& pod, std::string_view container);
  void OnPod(const ServerChange& change);

  Storage& storage_;
  const Clock& clock_;
  std::map<ObjectKey, std::map<std::string, LogPtr, std::less<>>> logs_;  // Of existing pods.
};

}  // namespace kube::testing
