// SPDX-License-Identifier: Apache-2.0
// How RapidJSON is compiled here. Included before any of its headers, which few files include:
// tests/style/fences.txt.
#pragma once

#include <stdexcept>

// RapidJSON's assertions would end the process. A failed one is a bug of ours: throw an exception, which the reconcile
// loop counts and survives.
#define RAPIDJSON_ASSERT(condition) \
  (static_cast<bool>(condition) ? void() : throw std::logic_error("rapidjson: " #condition))
#define RAPIDJSON_NOEXCEPT_ASSERT(condition) static_cast<void>(condition)
