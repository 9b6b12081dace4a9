// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of reconcilers: an in-process API server with our CRDs, the namespace team-a and the node n1 with 8
// GPUs, and the dependencies of every reconciler.
//
// Nothing runs by itself: the test starts each pass. A fixture declares the caches that its reconciler reads before it:
//
//   kube::Informer& pods_ = Cache<kube::Pod>();
//
// They start together, and end before any member of the fixture: no handler runs while its target is destroyed.
// `clock_` moves only when a test says so.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/work_queue.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"
#include "crds/types/all_crds.h"
#include "tests/kit/objects.h"

namespace grus::testing {

class ReconcilerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const kube::CrdInfo& crd : api::AllCrds()) {
      Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(crd));
    }
    Create("namespaces", Named("v1", "Namespace", "team-a"));
    AddNode("n1");
  }
  void TearDown() override {
    for (kube::Informer& cache : caches_) cache.Stop();
    for (kube::Informer& cache : caches_) cache.Join();
  }

  // Of objects of all namespaces. It lives as long as the fixture.
  template <typename T>
  kube::Informer& Cache() {
    ++waiters_;
    return caches_.emplace_back(client_, kube::KindOf<T>(), kube::InformerOptions{}, clock_, log_);
  }
  // Waits until they have caught up with the server.
  void StartCaches() {
    for (kube::Informer& cache : caches_) cache.Start();
    for (kube::Informer& cache : caches_) {
      ASSERT_TRUE(cache.WaitForSync(clock_.Now() + std::chrono::hours(1)));
    }
  }

  // The caches and the recorder of events have nothing more to tell.
  void Settle() { ASSERT_TRUE(clock_.AwaitWaiters(waiters_)); }

  static kube::Json Named(const char* api_version, const char* kind, const std::string& name,
                          const std::string& ns = {}) {
    return kit::MakeObject(api_version, kind, name, ns);
  }
  void Create(std::string_view resource, kube::Json object) {
    const auto created = server_.Create(resource, std::move(object));
    ASSERT_TRUE(created) << created.error().message();
  }
  // `change` takes the object as it is, a Json&. REQUIRES: it is there.
  template <typename F>
  void Edit(std::string_view resource, const kube::ObjectKey& key, F change, std::string_view subresource = {}) {
    kube::Json object = *server_.Get(resource, key);
    change(object);
    const auto updated = server_.Update(resource, std::move(object), subresource);
    ASSERT_TRUE(updated) << updated.error().message();
  }
  void SetStatus(std::string_view resource, const kube::ObjectKey& key, std::string_view status) {
    Edit(
        resource, key, [&](kube::Json& object) { object["status"] = *kube::ParseJson(status); }, "status");
  }
  // The quota "team" of namespace team-a, made at the first call.
  void PutQuota(const std::string& resource, const std::string& hard, const std::string& used) {
    if (!server_.Get("resourcequotas", {"team-a", "team"})) {
      Create("resourcequotas", Named("v1", "ResourceQuota", "team", "team-a"));
    }
    kube::Json status = kube::Json::MakeObject();
    status["hard"][resource] = hard;
    status["used"][resource] = used;
    SetStatus("resourcequotas", {"team-a", "team"}, kube::ToText(status));
  }
  // An object as the server has it. REQUIRES: it is there.
  template <typename T>
  std::shared_ptr<const T> Live(const kube::ObjectKey& key) {
    const auto read = client_.Get<T>(key);
    EXPECT_TRUE(read) << read.error().message();
    return *read;
  }
  void AddNode(const std::string& name) { Create("nodes", kit::MakeNode(name, 8)); }

  kube::testing::FakeClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, clock_};
  kube::WorkQueue queue_{clock_};
  kube::EventRecorder events_{client_, clock_, log_, {"example.com/test", "test"}};
  int waiters_ = 1;  // Threads that wait on the clock when nothing is left to do: the recorder's, and those of caches.

 private:
  std::deque<kube::Informer> caches_;
};

}  // namespace grus::testing
