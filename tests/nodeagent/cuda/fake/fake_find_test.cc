// SPDX-License-Identifier: Apache-2.0
// The ways to the fake driver's functions, and what cuGetProcAddress() says of names, versions and streams.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <map>

#include "tests/nodeagent/cuda/fake/driver_calls.h"
#include "tests/nodeagent/cuda/fake/fake_test.h"

namespace grus::cuda::fake {
namespace {

// The driver is loaded into the test itself, once: a world that its process has opened stays open.
class FakeFindTest : public FakeTest {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = std::filesystem::temp_directory_path() / "grus-fake-cuda-XXXXXX";
    *folder = mkdtemp(pattern.data());
    world = new FakeWorld(*folder + "/world", {.driver_version = 12090});
    setenv(kVariable, world->path().c_str(), 1);
    driver = dlopen((FakeCudaFolder() + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    int version = 0;  // The first call opens the world; other tests are not to live in it.
    if (driver != nullptr) reinterpret_cast<decltype(cuDriverGetVersion)*>(Symbol("cuDriverGetVersion"))(&version);
    unsetenv(kVariable);
  }
  static void TearDownTestSuite() {
    delete world;
    std::filesystem::remove_all(*folder);
  }
  void SetUp() override { ASSERT_NE(driver, nullptr); }
  void TearDown() override { world->ForgetFaults(); }

  static void* Symbol(const std::string& name) { return dlsym(driver, name.c_str()); }
  static CUdriverProcAddressQueryResult Find(const char* name, int version, std::uint64_t flags, void** function) {
    CUdriverProcAddressQueryResult answer = -1;
    EXPECT_EQ(reinterpret_cast<decltype(cuGetProcAddress_v2)*>(Symbol("cuGetProcAddress_v2"))(name, function, version,
                                                                                              flags, &answer),
              kSuccess);
    return answer;
  }
  static void* Found(const char* name, int version, std::uint64_t flags = 0) {
    void* function = nullptr;
    Find(name, version, flags, &function);
    return function;
  }

  static inline auto* const folder = new std::string;
  static inline FakeWorld* world = nullptr;
  static inline void* driver = nullptr;
};

TEST_F(FakeFindTest, EachFunctionIsExportedUnderAnAddressOfItsOwn) {
  std::map<void*, std::string> symbols;
  for (const char* symbol : {
#define GRUS_FAKE_CALL(symbol, asked, since, stream, ...) #symbol,
#include "tests/nodeagent/cuda/fake/driver_calls.inc"
#undef GRUS_FAKE_CALL
       }) {
    void* const address = Symbol(symbol);
    ASSERT_NE(address, nullptr) << symbol;
    EXPECT_TRUE(symbols.emplace(address, symbol).second) << symbol << " is " << symbols[address];
  }
}

TEST_F(FakeFindTest, TheVersionThatIsAskedForChoosesTheFunction) {
  struct Case {
    const char* name;
    int version;
    const char* symbol;
  };
  for (const Case& c :
       {Case{"cuMemAlloc", 2000, "cuMemAlloc"}, Case{"cuMemAlloc", 3019, "cuMemAlloc"},
        Case{"cuMemAlloc", 3020, "cuMemAlloc_v2"}, Case{"cuMemAlloc", 13000, "cuMemAlloc_v2"},
        Case{"cuCtxCreate", 11040, "cuCtxCreate_v3"}, Case{"cuCtxCreate", 12050, "cuCtxCreate_v4"},
        Case{"cuGetProcAddress", 11030, "cuGetProcAddress"}, Case{"cuGetProcAddress", 12000, "cuGetProcAddress_v2"}}) {
    EXPECT_EQ(Found(c.name, c.version), Symbol(c.symbol)) << c.name << " " << c.version;
  }
}

TEST_F(FakeFindTest, ANameIsNotFoundOrItsVersionIsNotSufficient) {
  void* function = driver;
  EXPECT_EQ(Find("cuNoSuch", 12000, 0, &function), kProcNotFound);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(Find("", 12000, 0, &function), kProcNotFound);
  EXPECT_EQ(Find("cuMemAllocManaged", 5000, 0, &function), kProcVersionTooOld);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(Find("cuMemAllocManaged", 6000, 0, &function), kProcFound);
  const auto first = reinterpret_cast<decltype(cuGetProcAddress)*>(Symbol("cuGetProcAddress"));
  EXPECT_EQ(first("cuNoSuch", &function, 12000, 0), kNotFound);
  EXPECT_EQ(first("cuInit", &function, 12000, 0), kSuccess);
  EXPECT_EQ(function, Symbol("cuInit"));
}

TEST_F(FakeFindTest, WhatIsNewerThanTheDriverIsNotFound) {
  EXPECT_EQ(Found("cuCtxSynchronize", 13000), Symbol("cuCtxSynchronize"));
  EXPECT_NE(Symbol("cuCtxSynchronize_v2"), nullptr);
}

TEST_F(FakeFindTest, WhatTheWorldLacksIsNotFound) {
  world->Lack("cuMemAllocManaged");
  world->Lack("cuMemAlloc_v2");

  void* function = nullptr;
  EXPECT_EQ(Find("cuMemAllocManaged", 12000, 0, &function), kProcNotFound);
  EXPECT_EQ(Found("cuMemAlloc", 12000), Symbol("cuMemAlloc"));
}

TEST_F(FakeFindTest, ThereAreNoExportTables) {
  const void* table = driver;
  const CUuuid id = {};
  EXPECT_EQ(reinterpret_cast<decltype(cuGetExportTable)*>(Symbol("cuGetExportTable"))(&table, &id), kNotFound);
}

TEST_F(FakeFindTest, AClientReachesTheDriverInEachWay) {
  FakeWorld its(Path());
  const std::vector<std::vector<std::string>> ways = {{"--by=libcuda.so.1"},
                                                      {"--by=libcuda.so"},
                                                      {"--by=" + FakeCudaFolder() + "/libcuda.so.1"},
                                                      {"--by=find"},
                                                      {"--by=find-v1"},
                                                      {"--by=find", "--per-thread"},
                                                      {"--by=default"},
                                                      {"--by=find", "--library=libcuda.so"}};
  for (const std::vector<std::string>& way : ways) {
    ClientProcess client({its.Environment()}, way);
    client.Get("start");
    client.Get("alloc 512");
    EXPECT_EQ(its.UsedBy(client.pid(), 0), 300 * kMiB + 512) << way.back();
  }
  ClientProcess linked({its.Environment()}, {}, "fake-cuda-client-linked");
  linked.Get("start");
  EXPECT_EQ(its.UsedBy(linked.pid(), 0), 300 * kMiB);
}

}  // namespace
}  // namespace grus::cuda::fake
