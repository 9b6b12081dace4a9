// SPDX-License-Identifier: Apache-2.0
// A worker pod as the API server of a real cluster shows it.
#pragma once

#include <string>

#include "tests/kit/tree_file.h"

namespace kube {

// In worker_pod.json `@` stands for the pod's number, so that no two pods have the same name, uid, address and version.
inline std::string PodText(int number) {
  static const std::string pattern = kit::ReadTreeFile("tests/clientlib/model/worker_pod.json");
  const std::string digits = std::to_string(10000 + number);
  std::string text;
  for (const char c : pattern) {
    if (c == '@') {
      text += digits;
    } else if (c != '\n') {
      text += c;
    }
  }
  return text;
}

}  // namespace kube
