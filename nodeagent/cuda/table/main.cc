// SPDX-License-Identifier: Apache-2.0
// cuda-function-table TABLE   checks the table of driver functions and writes, on stdout, the include file with those
//                             that libgrus-cuda.so hooks; exit code 1 and nothing on stdout if the table is wrong
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "nodeagent/cuda/table/function_table.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: cuda-function-table TABLE\n";
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) {
    std::cerr << argv[1] << ": cannot be read; name the table of driver functions\n";
    return 1;
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const grus::cuda::FunctionTable table = grus::cuda::ReadFunctionTable(text, argv[1]);
  for (const std::string& error : table.errors) std::cerr << error << "\n";
  if (!table.errors.empty()) return 1;
  std::cout << grus::cuda::WriteHooks(table.functions) << std::flush;
  if (!std::cout) {
    std::cerr << "the include file cannot be written to stdout; make room for it\n";
    return 1;
  }
  return 0;
}
