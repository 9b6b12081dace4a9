// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/lease_record.h"

#include <gtest/gtest.h>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;
using testing::FakeTransport;
using testing::JsonAnswer;

constexpr char kPath[] = "/apis/coordination.k8s.io/v1/namespaces/system/leases/grus";

HttpResponse LeaseHeldBy(std::string holder) {
  return JsonAnswer(200, R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"grus",)"
                         R"("namespace":"system","resourceVersion":"7"},"spec":{"holderIdentity":")" +
                             holder + R"(","leaseDurationSeconds":15}})");
}

TEST(LeaseRecord, AWriteThatComesBackWithAnotherHolderHoldsNothing) {
  FakeClock clock;
  FakeTransport server(clock);
  server.Expect("GET", kPath, LeaseHeldBy(""));
  server.Expect("PATCH", kPath, LeaseHeldBy("other"));
  Client client(server, nullptr, clock);
  LeaseRecord record(client, clock, {"system", "grus"}, "me", 15s);

  const Result<bool> held = record.TryHold({});

  ASSERT_TRUE(held);
  EXPECT_FALSE(*held);
  EXPECT_FALSE(record.IsOurs());
}

TEST(LeaseRecord, AReleaseThatComesBackWithAnotherHolderIsDone) {
  FakeClock clock;
  FakeTransport server(clock);
  server.Expect("GET", kPath, LeaseHeldBy("me"));
  server.Expect("PATCH", kPath, LeaseHeldBy("me"));
  server.Expect("PATCH", kPath, LeaseHeldBy("other"));
  server.Expect("GET", kPath, LeaseHeldBy("other"));
  Client client(server, nullptr, clock);
  LeaseRecord record(client, clock, {"system", "grus"}, "me", 15s);
  ASSERT_TRUE(*record.TryHold({}));

  EXPECT_TRUE(record.TryRelease({}));

  EXPECT_FALSE(record.IsOurs());
}

}  // namespace
}  // namespace kube
