// SPDX-License-Identifier: Apache-2.0
// Keys a CPU second through the work queue, on one thread: time on a clock says more about a shared machine
// than about the queue. bench/peers/cmd/peers/queue.go does the same with client-go's, under the same names.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <vector>

#include "clientlib/runtime/work_queue.h"

namespace {

using kube::ObjectKey;
using kube::WorkQueue;

const kube::SystemClock kClock;

std::vector<ObjectKey> Keys(std::int64_t count) {
  std::vector<ObjectKey> keys;
  for (int i = 0; i < count; ++i) {
    char ns[16], name[48];
    std::snprintf(ns, sizeof ns, "team-%02d", i % 60);
    std::snprintf(name, sizeof name, "bert-pretrain-%05d-workers-0", i);
    keys.push_back({ns, name});
  }
  return keys;
}

void TakeAll(WorkQueue& queue, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) queue.Done(queue.Get()->key);
}

void SetRate(benchmark::State& state, std::size_t keys_an_iteration) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(keys_an_iteration));
}

// The queue of an operator that keeps up: empty but for one key.
void BM_OneByOne(benchmark::State& state) {
  WorkQueue queue(kClock);
  const std::vector<ObjectKey> keys = Keys(state.range(0));
  std::size_t next = 0;
  for (auto _ : state) {
    queue.Add(keys[next]);
    TakeAll(queue, 1);
    next = next + 1 == keys.size() ? 0 : next + 1;
  }
  SetRate(state, 1);
}

// After a start or a relist: all keys wait at once.
void BM_FillThenDrain(benchmark::State& state) {
  WorkQueue queue(kClock);
  const std::vector<ObjectKey> keys = Keys(state.range(0));
  for (auto _ : state) {
    for (const ObjectKey& key : keys) queue.Add(key);
    TakeAll(queue, keys.size());
  }
  SetRate(state, keys.size());
}

// The delay of 1 ms passes while keys are still being added, or asleep.
void BM_AddAfter(benchmark::State& state) {
  WorkQueue queue(kClock);
  const std::vector<ObjectKey> keys = Keys(state.range(0));
  for (auto _ : state) {
    for (const ObjectKey& key : keys) queue.AddAfter(key, std::chrono::milliseconds(1));
    TakeAll(queue, keys.size());
  }
  SetRate(state, keys.size());
}

// A burst of changes to each object: ten adds, one get.
void BM_SameKeyTenTimes(benchmark::State& state) {
  WorkQueue queue(kClock);
  const std::vector<ObjectKey> keys = Keys(state.range(0));
  for (auto _ : state) {
    for (const ObjectKey& key : keys) {
      for (int i = 0; i < 10; ++i) queue.Add(key);
    }
    TakeAll(queue, keys.size());
  }
  SetRate(state, 10 * keys.size());
}

BENCHMARK(BM_OneByOne)->Arg(1'000)->Arg(100'000)->MeasureProcessCPUTime();
BENCHMARK(BM_FillThenDrain)->Arg(1'000)->Arg(100'000)->MeasureProcessCPUTime();
BENCHMARK(BM_AddAfter)->Arg(1'000)->Arg(100'000)->MeasureProcessCPUTime();
BENCHMARK(BM_SameKeyTenTimes)->Arg(1'000)->Arg(100'000)->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
