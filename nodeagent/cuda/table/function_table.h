// SPDX-License-Identifier: Apache-2.0
// The table of the CUDA driver's functions (driver_functions.txt, whose head explains it), and the C++ that is made of
// it. Pure: text in, text out. Part of a program that runs at build time, not of what runs in containers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace grus::cuda {

enum class FunctionClass { kCount, kCharge, kReport, kFind, kReconcile, kPass };

struct DriverFunction {
  std::string exported;  // The symbol.
  std::string asked;     // The name given to cuGetProcAddress,
  int since = 0;         // and the CUDA version from which that name means this symbol.
  FunctionClass function_class = FunctionClass::kPass;

  bool IsPerThread() const;  // Handed out by cuGetProcAddress only to those who want a stream 0 for each thread.
  bool IsHooked() const;     // libgrus-cuda.so has a function of its own for it.
  bool operator==(const DriverFunction&) const = default;
};

struct FunctionTable {
  std::vector<DriverFunction> functions;  // In the order of the file.
  std::vector<std::string> errors;        // Each names the file, the line and what to do; none: the table is right.
};

// Reads the table's text and checks it: four fields in each line, a known class, no symbol twice, sorted, one symbol
// for a name at a version. `file` is named in errors.
FunctionTable ReadFunctionTable(std::string_view text, std::string_view file);

// An include file: for each function that is hooked a line
//   GRUS_HOOK(EXPORTED, "ASKED", SINCE, IS_PER_THREAD, CLASS)
// with IS_PER_THREAD as true or false and CLASS as kCount, kCharge, kReport or kFind, sorted by ASKED, then
// IS_PER_THREAD, then SINCE: of several lines of a name, the last one whose SINCE is not above the version asked for is
// what that version means.
std::string WriteHooks(std::vector<DriverFunction> functions);

}  // namespace grus::cuda
