// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress(): of the functions of a name, that of the newest version that is not newer than what is asked for
// nor than the driver; and of these that of the asked-for stream.
#include <string_view>

#include "tests/nodeagent/cuda/fake/driver.h"

namespace grus::cuda::fake {

namespace {

struct Entry {
  std::string_view symbol, asked;
  int since;
  std::uint64_t stream;
  void* function;
};

const Entry kEntries[] = {
#define GRUS_FAKE_CALL(symbol, asked, since, stream, ...) \
  {#symbol, asked, since, stream, reinterpret_cast<void*>(&symbol)},
#include "tests/nodeagent/cuda/fake/driver_calls.inc"
#undef GRUS_FAKE_CALL
};

CUdriverProcAddressQueryResult Find(std::string_view name, int version, std::uint64_t flags, void** function) {
  Driver& driver = Driver::Get();
  CUdriverProcAddressQueryResult answer = kProcNotFound;
  const Entry* best = nullptr;
  for (const Entry& entry : kEntries) {
    if (entry.asked != name || entry.since > driver.state().driver_version) continue;
    if (entry.stream == kPerThreadStream && flags != kPerThreadStream) continue;
    if (driver.Lacks(std::string(entry.symbol)) || driver.Lacks(std::string(name))) continue;
    if (best == nullptr) answer = kProcVersionTooOld;
    if (entry.since > version) continue;
    // A version for one's own stream is better than any that is not.
    const bool is_better =
        best == nullptr || entry.stream > best->stream || (entry.stream == best->stream && entry.since > best->since);
    if (is_better) best = &entry;
    answer = kProcFound;
  }
  *function = best == nullptr ? nullptr : best->function;
  return answer;
}

}  // namespace

extern "C" {

CUresult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  if (const CUresult refused = Driver::Get().Begin(__func__, false); refused != kSuccess) return refused;
  if (name == nullptr || function == nullptr || flags > kPerThreadStream) return kInvalidValue;
  return Find(name, version, flags, function) == kProcFound ? kSuccess : kNotFound;
}

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags,
                             CUdriverProcAddressQueryResult* answer) {
  if (const CUresult refused = Driver::Get().Begin(__func__, false); refused != kSuccess) return refused;
  if (name == nullptr || function == nullptr || flags > kPerThreadStream) return kInvalidValue;
  const CUdriverProcAddressQueryResult found = Find(name, version, flags, function);
  if (answer != nullptr) *answer = found;
  return kSuccess;
}

}  // extern "C"

}  // namespace grus::cuda::fake
