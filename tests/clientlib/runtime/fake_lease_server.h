// SPDX-License-Identifier: Apache-2.0
// One Lease as the API server keeps it, behind the FakeTransports of any number of candidates: resource
// versions, conflicts, merge patches. Thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "clientlib/model/json.h"
#include "clientlib/testing/fake_transport.h"

namespace kube::testing {

class FakeLeaseServer {
 public:
  static constexpr char kPath[] = "/apis/coordination.k8s.io/v1/namespaces/system/leases";
  enum class Fault { kNone, kUnreachable, kHang, kLosesAnswers };  // The last: writes are carried out.

  // Answers the requests of `transport`, unless `fault` says otherwise. Both must outlive the transport's
  // use.
  void Serve(FakeTransport& transport, const std::atomic<Fault>& fault) {
    for (const char* method : {"GET", "POST", "PATCH"}) {
      transport.Handle(method, kPath, [this, &transport, &fault](const HttpRequest& request, const auto& stop) {
        switch (fault.load()) {
          case Fault::kUnreachable: return Result<HttpResponse>(Error(ErrorCode::kUnavailable, "unreachable"));
          case Fault::kHang: return transport.Hang(request, stop);
          case Fault::kLosesAnswers: {
            (void)Answer(request);
            return transport.Hang(request, stop);
          }
          case Fault::kNone: break;
        }
        return Result<HttpResponse>(Answer(request));
      });
    }
  }

  Json lease() const {
    std::lock_guard lock(mutex_);
    return lease_;
  }
  std::string Holder() const { return Text("holderIdentity"); }
  std::string Text(std::string_view field) const {
    const Json copy = lease();
    const Json* value = copy.At({"spec", field});
    return value && value->AsString() ? *value->AsString() : "";
  }
  std::int64_t Transitions() const {
    const Json copy = lease();
    const Json* value = copy.At({"spec", "leaseTransitions"});
    return value && value->AsInt() ? *value->AsInt() : -1;
  }

  // As another writer: kubectl, or a candidate that a test plays itself. Null removes the lease.
  void Change(const std::function<void(Json&)>& change) {
    std::lock_guard lock(mutex_);
    change(lease_);
    if (!lease_.is_null()) Store();
  }
  // The next patches find that somebody has just written something else.
  void ConflictNext(int times) {
    std::lock_guard lock(mutex_);
    conflicts_ = times;
  }

 private:
  HttpResponse Answer(const HttpRequest& request) {
    std::lock_guard lock(mutex_);
    if (request.method == "POST") {
      if (!lease_.is_null()) return StatusAnswer(409, "AlreadyExists", "exists");
      lease_ = *ParseJson(request.body);
      Store();
      return JsonAnswer(201, ToText(lease_));
    }
    if (lease_.is_null()) return StatusAnswer(404, "NotFound", "not found");
    if (request.method == "PATCH") {
      const Json patch = *ParseJson(request.body);
      if (conflicts_ > 0) {
        --conflicts_;
        Store();
      }
      const Json* version = patch.At({"metadata", "resourceVersion"});
      EXPECT_NE(version, nullptr) << "a write without a precondition";
      if (!version || *version != *lease_.At({"metadata", "resourceVersion"})) {
        return StatusAnswer(409, "Conflict", "the object has been modified");
      }
      MergePatch(lease_, patch);
      Store();
    }
    return JsonAnswer(200, ToText(lease_));
  }
  void Store() { lease_["metadata"]["resourceVersion"] = std::to_string(++version_); }

  mutable std::mutex mutex_;  // Guards everything below.
  Json lease_;
  std::int64_t version_ = 100;
  int conflicts_ = 0;
};

}  // namespace kube::testing
