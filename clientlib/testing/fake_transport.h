// SPDX-License-Identifier: Apache-2.0
// A Transport whose answers a test scripts.
//
// Two ways to answer, tried in this order:
//   1. Expected answers, each given once: the first of them whose method and target prefix fit.
//   2. Handlers, for any number of requests: the one with the longest fitting prefix.
// A request that neither fits fails with kInternal; it is recorded like all others.
// Targets are as the client sends them, "/api/v1/pods?limit=500", so a prefix may reach into the query.
//
// Thread-safe. Handlers run on the thread that sends, without a lock held.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "clientlib/http/transport.h"

namespace kube::testing {

// The body of a streamed answer, fed by the test. Thread-safe.
class FakeStream {
 public:
  FakeStream();                  // A handle: copies refer to the same stream.
  void Push(std::string bytes);  // Each Read() returns the bytes of one Push().
  void End();                    // The regular end, after all pushed bytes.
  void Break(Error error);       // Reads fail, after all pushed bytes.

  // Waits until the reader has taken all that was pushed and waits for more, or has closed the stream.
  // False after 20 s of real time.
  [[nodiscard]] bool AwaitDrained() const;
  // Waits until the reader has opened, or closed, the stream. False after 20 s of real time.
  [[nodiscard]] bool AwaitOpened() const;
  [[nodiscard]] bool AwaitClosed() const;

 private:
  friend class FakeTransport;
  struct State;
  class Reader;
  std::shared_ptr<State> state_;
};

class FakeTransport final : public Transport {
 public:
  using Handler = std::function<Result<HttpResponse>(const HttpRequest&, const std::stop_token&)>;

  explicit FakeTransport(const Clock& clock) : clock_(clock) {}

  void Handle(std::string method, std::string target_prefix, Handler handler);
  void Expect(std::string method, std::string target_prefix, Result<HttpResponse> answer);
  // The next fitting Open() gets this stream.
  FakeStream ExpectStream(std::string target_prefix);
  // The request hangs until its timeout or a stop.
  void ExpectHang(std::string method, std::string target_prefix);

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override;
  // An answer with status 200 that is no ExpectStream() becomes a stream of its body.
  Result<StreamResponse> Open(const HttpRequest& request, std::stop_token stop) override;

  std::vector<HttpRequest> requests() const;  // All so far, in order.
  // Waits until there were `count` requests; false after 20 s of real time.
  [[nodiscard]] bool AwaitRequests(std::size_t count) const;
  // True if all expected answers were given.
  bool is_exhausted() const;

  // For handlers: waits for the request's timeout or a stop, as if the server did not answer.
  Result<HttpResponse> Hang(const HttpRequest& request, const std::stop_token& stop) const;

 private:
  struct HangForever {};
  using Answer = std::variant<Result<HttpResponse>, FakeStream, HangForever, Handler>;
  struct Rule {
    std::string method, target_prefix;
    Answer answer;
    bool Fits(const HttpRequest& request) const {
      return request.method == method && request.target.starts_with(target_prefix);
    }
  };
  Answer Find(const HttpRequest& request);
  Result<HttpResponse> Respond(const Answer& answer, const HttpRequest& request, const std::stop_token& stop) const;

  const Clock& clock_;
  mutable std::mutex mutex_;  // Guards everything below.
  mutable std::condition_variable requested_;
  std::vector<HttpRequest> requests_;
  std::deque<Rule> expected_;
  std::vector<Rule> handlers_;
};

HttpResponse JsonAnswer(int status, std::string body);
// A refusal as the API server writes it: a metav1.Status.
HttpResponse StatusAnswer(int status, std::string_view reason, std::string_view message);

}  // namespace kube::testing
