// SPDX-License-Identifier: Apache-2.0
// LeaseRecord against a server that says anything: one answer a line, a status and a body. Rules: each write
// is JSON with times that can be read, and is bound to a version of the lease; a record with another holder
// is not ours.
#include <charconv>
#include <string>

#include "clientlib/model/json.h"
#include "clientlib/model/time.h"
#include "clientlib/runtime/lease_record.h"
#include "tests/fuzz/check.h"
#include "tests/kit/manual_clock.h"

namespace {

using kube::Json;
using kube::Result;

void CheckWrite(const kube::HttpRequest& request) {
  const Result<Json> body = kube::ParseJson(request.body);
  fuzz::Require(body.ok(), "a write is JSON");
  for (const char* field : {"acquireTime", "renewTime"}) {
    const Json* time = body->At({"spec", field});
    fuzz::Require(time && time->AsString() && kube::ParseTime(*time->AsString()).ok(), "a write's times can be read");
  }
  const bool is_bound = body->At({"metadata", request.method == "POST" ? "name" : "resourceVersion"}) != nullptr;
  fuzz::Require(is_bound, "a write is bound to a version");
}

class CannedServer final : public kube::Transport {
 public:
  explicit CannedServer(std::string_view answers) : answers_(answers) {}

  Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token) override {
    if (!request.body.empty()) CheckWrite(request);
    if (answers_.empty()) return kube::Error(kube::ErrorCode::kUnavailable, "no server");
    std::string_view body = fuzz::Cut(answers_, '\n');
    const std::string_view status = fuzz::Cut(body, ' ');
    kube::HttpResponse response;
    std::from_chars(status.data(), status.data() + status.size(), response.status);
    response.body = body;
    return response;
  }
  Result<kube::StreamResponse> Open(const kube::HttpRequest&, std::stop_token) override {
    return kube::Error(kube::ErrorCode::kInternal, "no streams here");
  }

 private:
  std::string_view answers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  CannedServer server(fuzz::Text(data, size));
  kube::testing::ManualClock clock;
  kube::Client client(server, nullptr, clock);
  kube::LeaseRecord record(client, clock, {"kube-system", "grus"}, "me", std::chrono::seconds(15));
  for (int i = 0; i < 4; ++i) {
    const Result<bool> held = record.TryHold({});
    fuzz::Require(!held || !*held || record.IsOurs(), "who holds the lease is its holder");
    fuzz::Require(record.renewed_at() <= clock.Now(), "a renewal lies in the past");
    fuzz::Require(record.IsOurs() == (record.holder() == "me"), "a lease is its holder's");
    clock.Advance(std::chrono::seconds(10));
  }
  static_cast<void>(record.TryRelease({}));
  return 0;
}
