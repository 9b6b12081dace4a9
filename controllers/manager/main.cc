// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <cstdio>

#include "clientlib/runtime/shutdown.h"
#include "controllers/manager/options.h"
#include "controllers/manager/wiring.h"

int main(int argc, char** argv) {
  // An arena for each thread would multiply the memory of a process whose threads mostly wait.
  mallopt(M_ARENA_MAX, 2);
  kube::SignalStop signals;  // First: every thread must inherit the blocked signals.
  const kube::Result<grus::Options> options = grus::ParseOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr, "grus-manager: %s\n", options.error().message().c_str());
    return 2;
  }
  if (!options->text_to_print.empty()) {
    std::fputs(options->text_to_print.c_str(), stdout);
    return 0;
  }
  return grus::RunManager(*options, signals.token());
}
