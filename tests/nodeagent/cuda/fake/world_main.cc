// SPDX-License-Identifier: Apache-2.0
// A world of the fake driver for scripts: `fake-cuda-world FILE GIB...` makes it, says the UUID of each GPU, a line
// each, and lives until its input ends. To each line of input, the number of a GPU, it says how many bytes are used of
// it.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "tests/nodeagent/cuda/fake/fake_world.h"

int main(int argc, char** argv) {
  using grus::cuda::fake::FakeWorld;
  if (argc < 3) {
    std::cerr << "usage: fake-cuda-world FILE GIB...\n";
    return 2;
  }
  grus::cuda::fake::WorldSetup setup{.gpus = {}};
  for (int i = 2; i < argc; ++i) setup.gpus.push_back(std::strtoull(argv[i], nullptr, 10) << 30);
  const int count = argc - 2;
  try {
    FakeWorld world(argv[1], setup);
    for (int gpu = 0; gpu < count; ++gpu) std::cout << FakeWorld::UuidText(gpu) << std::endl;
    for (int gpu; std::cin >> gpu && gpu >= 0 && gpu < count;) std::cout << world.Used(gpu) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "fake-cuda-world: " << error.what() << '\n';
    return 1;
  }
}
