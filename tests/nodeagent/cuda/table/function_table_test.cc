// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/table/function_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/kit/tree_file.h"

namespace grus::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ErrorsOf(const std::string& text) { return ReadFunctionTable(text, "t.txt").errors; }

TEST(FunctionTable, ReadsEachLineButComments) {
  const FunctionTable table = ReadFunctionTable(
      "# cuInit cuInit 2000 what comes here\n"
      "cuMemAlloc_v2 cuMemAlloc 3020 count\n"
      "#\n"
      "cuMemcpy_ptds\tcuMemcpy   7000 pass",
      "t.txt");

  EXPECT_THAT(table.errors, IsEmpty());
  EXPECT_THAT(table.functions, ElementsAre(DriverFunction{"cuMemAlloc_v2", "cuMemAlloc", 3020, FunctionClass::kCount},
                                           DriverFunction{"cuMemcpy_ptds", "cuMemcpy", 7000, FunctionClass::kPass}));
}

TEST(FunctionTable, KnowsEachClassAndHooksAllButTwo) {
  struct Case {
    std::string word;
    FunctionClass function_class;
    bool is_hooked;
  };
  for (const Case& c :
       {Case{"count", FunctionClass::kCount, true}, Case{"charge", FunctionClass::kCharge, true},
        Case{"report", FunctionClass::kReport, true}, Case{"find", FunctionClass::kFind, true},
        Case{"reconcile", FunctionClass::kReconcile, false}, Case{"pass", FunctionClass::kPass, false}}) {
    const FunctionTable table = ReadFunctionTable("cuInit cuInit 2000 " + c.word + "\n", "t.txt");

    ASSERT_THAT(table.errors, IsEmpty()) << c.word;
    EXPECT_EQ(table.functions[0].function_class, c.function_class) << c.word;
    EXPECT_EQ(table.functions[0].IsHooked(), c.is_hooked) << c.word;
  }
}

TEST(FunctionTable, TakesFunctionsOfThePerThreadStreamByTheirSuffix) {
  const auto is_per_thread = [](const std::string& exported) { return DriverFunction{exported, ""}.IsPerThread(); };

  EXPECT_TRUE(is_per_thread("cuLaunchKernel_ptsz"));
  EXPECT_TRUE(is_per_thread("cuMemcpyHtoD_v2_ptds"));
  EXPECT_FALSE(is_per_thread("cuLaunchKernel"));
  EXPECT_FALSE(is_per_thread("cuMemcpyHtoD_v2"));
}

// Each with the file, the line, and what to do.
TEST(FunctionTable, RefusesALineThatIsNotRight) {
  const std::string classes = "; use count, charge, report, find, reconcile or pass";
  const std::pair<std::string, std::string> cases[] = {
      {"cuInit cuInit 2000", "t.txt:2: has 3 fields; write EXPORTED ASKED SINCE CLASS"},
      {"cuInit cuInit 2000 pass now", "t.txt:2: has 5 fields; write EXPORTED ASKED SINCE CLASS"},
      {"", "t.txt:2: has 0 fields; write EXPORTED ASKED SINCE CLASS"},
      {"cuInit cuInit 2000 cont", "t.txt:2: class \"cont\" is not known" + classes},
      {"cuInit cuInit 2000 kPass", "t.txt:2: class \"kPass\" is not known" + classes},
      {"cuInit cuInit 2000 pass\r", "t.txt:2: class \"pass\r\" is not known" + classes},
      {"nvmlInit nvmlInit 2000 pass", "t.txt:2: \"nvmlInit\" is no function of the driver; write its symbol, cu..."},
      {"cuInit cu-Init 2000 pass", "t.txt:2: \"cu-Init\" is no function of the driver; write its symbol, cu..."},
      {"cuInit_ptsz cuInit_ptsz 2000 pass",
       "t.txt:2: nobody asks for \"cuInit_ptsz\"; leave _ptsz and _ptds to the symbol"},
      {"cuInit cuInit 2.0 pass", "t.txt:2: \"2.0\" is no CUDA version; write 3020 for 3.2, 11040 for 11.4"},
      {"cuInit cuInit 1200 pass", "t.txt:2: \"1200\" is no CUDA version; write 3020 for 3.2, 11040 for 11.4"},
      {"cuInit cuInit 11045 pass", "t.txt:2: \"11045\" is no CUDA version; write 3020 for 3.2, 11040 for 11.4"},
      {"cuInit cuInit 11040a pass", "t.txt:2: \"11040a\" is no CUDA version; write 3020 for 3.2, 11040 for 11.4"},
      {"cuInit cuInit 110400 pass", "t.txt:2: \"110400\" is no CUDA version; write 3020 for 3.2, 11040 for 11.4"},
  };
  for (const auto& [line, error] : cases) {
    EXPECT_THAT(ErrorsOf("# head\n" + line + "\ncuWork cuWork 2000 pass\n"), ElementsAre(error)) << line;
  }
}

TEST(FunctionTable, RefusesASymbolThatIsThereTwice) {
  EXPECT_THAT(ErrorsOf("cuInit cuInit 2000 pass\ncuInit cuInit 3020 pass\n"),
              ElementsAre("t.txt:2: cuInit is in line 1 too; remove one"));
}

TEST(FunctionTable, RefusesTwoSymbolsForANameAtAVersion) {
  EXPECT_THAT(ErrorsOf("cuInit cuInit 2000 pass\ncuInit_v2 cuInit 2000 pass\n"),
              ElementsAre("t.txt:2: cuInit at 2000 is line 1's already; correct ASKED or SINCE of one"));
}

TEST(FunctionTable, TakesOneMoreForANameAtAVersionIfItIsOfThePerThreadStream) {
  EXPECT_THAT(ErrorsOf("cuGraphLaunch cuGraphLaunch 10000 charge\ncuGraphLaunch_ptsz cuGraphLaunch 10000 charge\n"),
              IsEmpty());
}

TEST(FunctionTable, RefusesLinesOutOfOrder) {
  const auto error = [](const std::string& late, const std::string& early) {
    return "t.txt:2: " + late + " must come before " + early + "; sort by ASKED, then SINCE, then EXPORTED";
  };

  EXPECT_THAT(ErrorsOf("cuB cuB 2000 pass\ncuA cuA 2000 pass\n"), ElementsAre(error("cuA", "cuB")));
  EXPECT_THAT(ErrorsOf("cuA_v2 cuA 10000 pass\ncuA cuA 3020 pass\n"), ElementsAre(error("cuA", "cuA_v2")));
  EXPECT_THAT(ErrorsOf("cuA_ptsz cuA 2000 pass\ncuA cuA 2000 pass\n"), ElementsAre(error("cuA", "cuA_ptsz")));
}

TEST(FunctionTable, TellsAllErrorsAtOnce) {
  EXPECT_THAT(ErrorsOf("cuA cuA 2000\ncuB cuB 2000 cont\ncuC cuC 2000 pass\n"),
              ElementsAre(HasSubstr("t.txt:1: "), HasSubstr("t.txt:2: ")));
}

TEST(FunctionTable, RefusesATableWithoutAFunction) {
  EXPECT_THAT(ErrorsOf(""), ElementsAre("t.txt: has no function; restore it from the repository"));
  EXPECT_THAT(ErrorsOf("# head\n"), ElementsAre("t.txt: has no function; restore it from the repository"));
}

TEST(WriteHooks, WritesALineForEachHookedFunctionByNameStreamAndVersion) {
  const FunctionTable table = ReadFunctionTable(
      "cuGetProcAddress_v2 cuGetProcAddress 12000 find\n"
      "cuInit cuInit 2000 pass\n"
      "cuLaunchKernel cuLaunchKernel 4000 charge\n"
      "cuLaunchKernel_ptsz cuLaunchKernel 7000 charge\n"
      "cuLaunchKernel_v2 cuLaunchKernel 20000 charge\n"
      "cuMemFree_v2 cuMemFree 3020 count\n"
      "cuMemGetInfo_v2 cuMemGetInfo 3020 report\n"
      "cuModuleLoad cuModuleLoad 2000 reconcile\n",
      "t.txt");
  ASSERT_THAT(table.errors, IsEmpty());

  EXPECT_EQ(WriteHooks(table.functions),
            "// SPDX-License-Identifier: Apache-2.0\n"
            "// Generated by cuda-function-table from nodeagent/cuda/table/driver_functions.txt; do not edit.\n"
            "GRUS_HOOK(cuGetProcAddress_v2, \"cuGetProcAddress\", 12000, false, kFind)\n"
            "GRUS_HOOK(cuLaunchKernel, \"cuLaunchKernel\", 4000, false, kCharge)\n"
            "GRUS_HOOK(cuLaunchKernel_v2, \"cuLaunchKernel\", 20000, false, kCharge)\n"
            "GRUS_HOOK(cuLaunchKernel_ptsz, \"cuLaunchKernel\", 7000, true, kCharge)\n"
            "GRUS_HOOK(cuMemFree_v2, \"cuMemFree\", 3020, false, kCount)\n"
            "GRUS_HOOK(cuMemGetInfo_v2, \"cuMemGetInfo\", 3020, false, kReport)\n");
}

// The table itself.
class DriverFunctions : public ::testing::Test {
 protected:
  DriverFunctions() {
    const std::string file = "nodeagent/cuda/table/driver_functions.txt";
    table_ = ReadFunctionTable(kit::ReadTreeFile(file), file);
  }

  FunctionTable table_;
};

TEST_F(DriverFunctions, AreReadWithoutError) {
  EXPECT_THAT(table_.errors, IsEmpty());
  EXPECT_GT(table_.functions.size(), 700U);
}

// Which symbol a name means depends on versions that programs choose; what is done about it must not.
TEST_F(DriverFunctions, OfOneNameAreOfOneClass) {
  std::map<std::string, FunctionClass> class_of;
  for (const DriverFunction& function : table_.functions) {
    const auto [of_name, is_new] = class_of.emplace(function.asked, function.function_class);
    EXPECT_EQ(of_name->second, function.function_class) << function.exported;
  }
}

TEST_F(DriverFunctions, ThatTakeMemoryOrRunKernelsAreHookedInAllTheirForms) {
  std::map<FunctionClass, std::set<std::string>> of_class;
  for (const DriverFunction& function : table_.functions) of_class[function.function_class].insert(function.exported);

  const std::pair<FunctionClass, std::vector<std::string>> wanted[] = {
      {FunctionClass::kCount, {"cuMemAlloc",           "cuMemAlloc_v2",           "cuMemAllocPitch",
                               "cuMemAllocPitch_v2",   "cuMemAllocManaged",       "cuMemAllocAsync",
                               "cuMemAllocAsync_ptsz", "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz",
                               "cuMemCreate",          "cuArrayCreate",           "cuArrayCreate_v2",
                               "cuArray3DCreate",      "cuArray3DCreate_v2",      "cuMipmappedArrayCreate",
                               "cuCtxCreate",          "cuCtxCreate_v2",          "cuCtxCreate_v3",
                               "cuCtxCreate_v4",       "cuDevicePrimaryCtxRetain"}},
      {FunctionClass::kCharge,
       {"cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx",
        "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz",
        "cuLaunchCooperativeKernelMultiDevice", "cuGraphLaunch", "cuGraphLaunch_ptsz"}},
      {FunctionClass::kReport, {"cuMemGetInfo", "cuMemGetInfo_v2", "cuDeviceTotalMem", "cuDeviceTotalMem_v2"}},
      {FunctionClass::kFind, {"cuGetProcAddress", "cuGetProcAddress_v2"}},
  };
  for (const auto& [function_class, exported] : wanted) {
    for (const std::string& symbol : exported) EXPECT_TRUE(of_class[function_class].contains(symbol)) << symbol;
  }
}

// What NVIDIA's runtime 12.9 and 13.5 ask the driver for, at the versions that they do.
TEST_F(DriverFunctions, AnswerWhatTheRuntimeAsksFor) {
  std::map<std::tuple<std::string, int, bool>, std::string> symbol_of;
  for (const DriverFunction& function : table_.functions) {
    symbol_of[{function.asked, function.since, function.IsPerThread()}] = function.exported;
  }

  struct Case {
    std::string asked;
    int version;
    bool is_per_thread;
    std::string exported;
  };
  for (const Case& c :
       {Case{"cuMemAlloc", 3020, false, "cuMemAlloc_v2"}, Case{"cuLaunchKernel", 4000, false, "cuLaunchKernel"},
        Case{"cuLaunchKernel", 7000, true, "cuLaunchKernel_ptsz"},
        Case{"cuLaunchKernelEx", 11060, true, "cuLaunchKernelEx_ptsz"},
        Case{"cuGraphLaunch", 10000, true, "cuGraphLaunch_ptsz"},
        Case{"cuMemAllocAsync", 11020, true, "cuMemAllocAsync_ptsz"},
        Case{"cuGraphAddNode", 12020, false, "cuGraphAddNode"},
        Case{"cuGraphAddNode", 12030, false, "cuGraphAddNode_v2"}, Case{"cuCtxCreate", 3020, false, "cuCtxCreate_v2"},
        Case{"cuGraphInstantiate", 11000, false, "cuGraphInstantiate_v2"},
        Case{"cuGraphInstantiateWithFlags", 11040, false, "cuGraphInstantiateWithFlags"},
        Case{"cuGetProcAddress", 11030, false, "cuGetProcAddress"},
        Case{"cuGetProcAddress", 12000, false, "cuGetProcAddress_v2"}}) {
    EXPECT_EQ((symbol_of[{c.asked, c.version, c.is_per_thread}]), c.exported) << c.asked << " at " << c.version;
  }
}

}  // namespace
}  // namespace grus::cuda
