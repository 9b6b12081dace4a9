// SPDX-License-Identifier: Apache-2.0
// A client whose server is a script.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "clientlib/client/client.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace kube::testing {

using namespace std::chrono_literals;

inline constexpr std::string_view kMapText =
    R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"team-a","uid":"u-1",)"
    R"("resourceVersion":"7"},"data":{"x":"1"}})";

inline HttpResponse MapAnswer() { return JsonAnswer(200, std::string(kMapText)); }

// A 429 or 5xx that asks to come back.
inline HttpResponse ComeBackAnswer(int status, std::string after) {
  HttpResponse answer = StatusAnswer(status, "TooManyRequests", "too many requests");
  answer.headers.emplace_back("retry-after", std::move(after));
  return answer;
}

// Counts what it is asked; a refused token is replaced by the next one.
class FakeTokens final : public TokenSource {
 public:
  Result<std::string> AuthorizationHeader() override {
    if (failure_) return *failure_;
    return "Bearer token-" + std::to_string(refused_.size());
  }
  void Refused(TimePoint sent) override { refused_.push_back(sent); }

  std::vector<TimePoint> refused_;
  std::optional<Error> failure_;
};

class FakeObserver final : public RequestObserver {
 public:
  void OnRequest(std::string_view verb, const Kind& kind, int code, Duration) override {
    seen_.push_back(std::string(verb) + " " + std::string(kind.plural) + " " + std::to_string(code));
  }
  std::vector<std::string> seen_;
};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    options_.user_agent = "grus/0.1";
    options_.field_manager = "grus-test";
  }

  Client& client() {
    if (!client_) client_ = std::make_unique<Client>(transport_, &tokens_, clock_, options_, &observer_);
    return *client_;
  }
  HttpRequest Last() const { return transport_.requests().back(); }
  // Values of all headers of that name in the last request.
  std::vector<std::string> LastHeader(std::string_view name) const {
    std::vector<std::string> values;
    for (const auto& [have, value] : Last().headers) {
      if (have == name) values.push_back(value);
    }
    return values;
  }
  // Runs `call` on a thread of its own, for the calls that wait.
  template <typename Call>
  auto Async(Call call) {
    return std::async(std::launch::async, std::move(call));
  }

  const Kind& kMaps = KindOf<ConfigMap>();
  FakeClock clock_;
  FakeTransport transport_{clock_};
  FakeTokens tokens_;
  FakeObserver observer_;
  ClientOptions options_;
  std::unique_ptr<Client> client_;
};

}  // namespace kube::testing
