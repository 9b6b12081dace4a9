// SPDX-License-Identifier: Apache-2.0
// Sends HTTP requests and streams responses. An interface without libcurl types; all network traffic goes through it.
//
// Three pools on connections of their own, so that a burst of requests or a large list never delays a watch
// or a lease renewal (docs/runtime-rules.md, section transport). After a kTimeout later requests of that pool use new
// connections, since the old ones may hang; what runs on those goes on. Redirects are never followed: credentials must
// not travel to another host.
// Thread-safe: any number of threads may send at once.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"

namespace kube {

enum class HttpPool { kRequest, kWatch, kLease };

// The `{}` allow designated initialisers that name only some fields.
struct HttpRequest {
  std::string method = "GET";
  std::string target{};  // Path and query, already escaped: "/api/v1/pods?limit=500".
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  Duration timeout = std::chrono::seconds(30);  // Whole exchange; for a stream: until its headers have come.
  HttpPool pool = HttpPool::kRequest;
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
  std::string body;

  // The first header of that lower-case name; empty if none.
  const std::string& Header(std::string_view name) const;
};

// The body of a streamed response. Not thread-safe; destroying it closes the stream.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // The next bytes, at most about 64 KiB; an empty string at the regular end of the body. Waits until
  // `until`, then kTimeout (the stream stays usable). kUnavailable: the connection broke. kTooLarge: the
  // reader fell behind by more than the transport's buffer limit, and the stream was given up.
  virtual Result<std::string> Read(TimePoint until, std::stop_token stop) = 0;
};

struct StreamResponse {
  HttpResponse head;                   // For a status other than 200 its body is filled (up to 64 KiB).
  std::unique_ptr<ByteStream> stream;  // Null unless head.status is 200.
};

// Error::reason() of a kUnavailable whose request was sent, but whose answer did not arrive completely: the server may
// or may not have carried it out.
inline constexpr std::string_view kConnectionLost = "ConnectionLost";

class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks until the answer is complete. What the server refused without processing it may be sent again, also a write
  // (rule H6). Any HTTP status is a success here. Errors: kTimeout, kCancelled
  // (stop), kUnavailable (resolve, connect, TLS, broken connection), kTooLarge (body over the limit).
  virtual Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) = 0;

  // Blocks until the headers of the answer have come. Errors as Send().
  virtual Result<StreamResponse> Open(const HttpRequest& request, std::stop_token stop) = 0;
};

}  // namespace kube
