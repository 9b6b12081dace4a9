// SPDX-License-Identifier: Apache-2.0
// A network that fails between a client and the real API server, over HTTP/2, with the usual times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "clientlib/auth/kubeconfig.h"
#include "clientlib/client/connection.h"
#include "clientlib/model/coordination_v1.h"
#include "clientlib/runtime/leader_elector.h"
#include "tests/integration/kubeconfig.h"
#include "tests/kit/event.h"
#include "tests/kit/must.h"
#include "tests/kit/relay.h"
#include "tests/kit/temp_dir.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;
using Fault = kit::Relay::Fault;
using kube::TimePoint;

// When the requests about leases were answered, and when they were not.
class LeaseRequests : public kube::RequestObserver {
 public:
  void OnRequest(std::string_view, const kube::Kind& kind, int code, kube::Duration) override {
    if (&kind != &kube::KindOf<kube::Lease>()) return;
    std::lock_guard lock(mutex_);
    const TimePoint now = std::chrono::steady_clock::now();
    (code == 200 || code == 201 ? answered_at_ : failed_at_) = now;
    changed_.notify_all();
  }
  // False if none comes within a minute.
  bool AwaitAnswer(TimePoint after) { return Await(answered_at_, after); }
  bool AwaitFailure(TimePoint after) { return Await(failed_at_, after); }

 private:
  bool Await(const TimePoint& last, TimePoint after) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return last > after; });
  }

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  TimePoint answered_at_{}, failed_at_{};
};

class Network : public ::testing::Test {
 protected:
  Network() : direct_(kit::Must(kube::LoadKubeconfig({}))), network_(ServerPort(direct_)) {
    network_.Open();
    const std::string file =
        folder_.Write("config", KubeconfigText(direct_, ServerAt(network_.port()), direct_.ca_pem));
    connection_ = kit::Must(kube::Connect({.kubeconfig = file, .observer = &requests_}, clock_));
  }
  TimePoint Now() const { return clock_.Now(); }
  double SecondsSince(TimePoint then) const { return std::chrono::duration<double>(Now() - then).count(); }
  void Report(const char* what, double seconds) { RecordProperty(what, std::to_string(seconds)); }

  // Leads until the end of its life.
  class Leader {
   public:
    Leader(Network& test, const std::string& name)
        : elector_(kit::Must(kube::LeaderElector::Create(*test.connection_->lease_client, test.clock_, log_,
                                                         {.lease = {"default", name}, .identity = name}))),
          thread_([this](std::stop_token stop) {
            result_ = elector_->Run(stop, [this](std::stop_token end, std::stop_token) {
              leads_.Set();
              kube::testing::Event ended;
              std::stop_callback on_end(end, [&] { ended.Set(); });
              while (!ended.Wait()) continue;
            });
          }) {}
    bool AwaitLeading() { return leads_.Wait(); }
    bool IsLeader() const { return elector_->IsLeader(); }
    // Ok unless leadership was lost.
    kube::Status Stop() {
      thread_.request_stop();
      thread_.join();
      return std::move(result_);
    }

   private:
    const kube::Log log_{kube::LogLevel::kError};
    std::unique_ptr<kube::LeaderElector> elector_;
    kube::testing::Event leads_;
    kube::Status result_;
    std::jthread thread_;
  };

  const kube::ClientConfig direct_;
  const kube::SystemClock clock_{};
  const kube::testing::TempDir folder_;
  LeaseRequests requests_;
  kit::Relay network_;
  std::unique_ptr<kube::Connection> connection_;
};

class FailingNetwork : public Network, public ::testing::WithParamInterface<Fault> {};

INSTANTIATE_TEST_SUITE_P(Each, FailingNetwork, ::testing::Values(Fault::kFreeze, Fault::kDrop),
                         [](const auto& fault) { return fault.param == Fault::kFreeze ? "Freeze" : "Drop"; });

TEST_P(FailingNetwork, E3AConnectionThatHangsDoesNotLoseTheLease) {
  Leader leader(*this, "network-hang");
  ASSERT_TRUE(leader.AwaitLeading());
  ASSERT_TRUE(requests_.AwaitAnswer(Now()));

  const TimePoint broken = Now();
  network_.BreakOpenOnes(GetParam());

  ASSERT_TRUE(requests_.AwaitFailure(broken));
  EXPECT_TRUE(requests_.AwaitAnswer(Now()));
  Report("seconds_to_next_renewal", SecondsSince(broken));
  EXPECT_TRUE(leader.IsLeader());
  EXPECT_TRUE(requests_.AwaitAnswer(Now()));
  const kube::Status stopped = leader.Stop();
  EXPECT_TRUE(stopped) << kube::Status(stopped).error().message();
}

TEST_P(FailingNetwork, H5ALeaseIsRenewedWithin5SecondsAfterTheNetworkIsBack) {
  Leader leader(*this, "network-back");
  ASSERT_TRUE(leader.AwaitLeading());
  ASSERT_TRUE(requests_.AwaitAnswer(Now()));

  const TimePoint broken = Now();
  network_.BreakAll(GetParam());
  ASSERT_TRUE(requests_.AwaitFailure(broken));
  const TimePoint back = Now();
  network_.Heal();

  ASSERT_TRUE(requests_.AwaitAnswer(back));
  Report("seconds_to_next_renewal", SecondsSince(back));
  EXPECT_LT(SecondsSince(back), 5);
  const kube::Status stopped = leader.Stop();
  EXPECT_TRUE(stopped) << kube::Status(stopped).error().message();
}

TEST_P(FailingNetwork, H5RequestsAreAnsweredWithin5SecondsAfterTheNetworkIsBack) {
  // Their time-out is short, so that some of them are over before.
  kube::Client client(*connection_->transport, connection_->tokens.get(), clock_, {.timeout = 4s});
  ASSERT_TRUE(client.GetRaw("/version"));
  const auto pending = [&] {
    return std::async(std::launch::async, [&] { return connection_->client->GetRaw("/version"); });
  };

  network_.BreakAll(GetParam());
  auto on_old_connection = pending();
  EXPECT_FALSE(client.GetRaw("/version"));
  auto on_new_connection = pending();
  EXPECT_FALSE(client.GetRaw("/version"));
  const TimePoint back = Now();
  network_.Heal();

  EXPECT_TRUE(client.GetRaw("/version"));
  Report("seconds_to_next_answer", SecondsSince(back));
  EXPECT_TRUE(on_old_connection.get());
  EXPECT_TRUE(on_new_connection.get());
  Report("seconds_to_pending_answers", SecondsSince(back));
  EXPECT_LT(SecondsSince(back), 5);
}

TEST_P(FailingNetwork, H5ARequestIsAnsweredAfterOneTimeOutWhereANewConnectionWorks) {
  kube::Client client(*connection_->transport, connection_->tokens.get(), clock_, {.timeout = 4s});
  ASSERT_TRUE(client.GetRaw("/version"));

  const TimePoint broken = Now();
  network_.BreakOpenOnes(GetParam());
  EXPECT_FALSE(client.GetRaw("/version"));

  EXPECT_TRUE(client.GetRaw("/version"));
  Report("seconds_to_next_answer", SecondsSince(broken));
  EXPECT_LT(SecondsSince(broken), 6);
}

// The kernel gives up what nobody acknowledges (TCP_USER_TIMEOUT), long before the request's own 30 s.
TEST_F(Network, H5WhatIsNotAcknowledgedIsGivenUpBeforeARenewDeadline) {
  ASSERT_TRUE(connection_->client->GetRaw("/version"));

  const TimePoint broken = Now();
  network_.BreakOpenOnes(Fault::kDrop);

  EXPECT_TRUE(connection_->client->GetRaw("/version"));
  Report("seconds_to_answer", SecondsSince(broken));
  EXPECT_LT(SecondsSince(broken), 10);
}

}  // namespace
}  // namespace grus::testing
