// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/share_use.h"

#include <algorithm>

namespace grus {
namespace {

std::uint64_t Excess(std::uint64_t has, std::uint64_t of) { return has > of ? has - of : 0; }

std::uint64_t EscapedOf(const std::vector<DriverProcess>& processes, const std::vector<AccountCopy::Process>& account) {
  std::uint64_t escaped = 0;
  for (const DriverProcess& process : processes) {
    if (process.pids.empty()) continue;
    const auto is_it = [&](const AccountCopy::Process& one) {
      return std::ranges::find(process.pids, one.pid) != process.pids.end();
    };
    const auto known = std::ranges::find_if(account, is_it);
    const bool is_known = known != account.end() && !known->memory_bytes.empty();
    escaped += is_known ? Excess(process.memory_bytes, known->memory_bytes.front() + ShareUse::kOfProcess)
                        : process.memory_bytes;
  }
  return escaped;
}

}  // namespace

void ShareUse::NoteMemory(std::uint64_t by_account) {
  by_account_ = by_account;
  most_by_account_ = std::max(most_by_account_, by_account);
}

void ShareUse::NoteLook(const std::vector<DriverProcess>& processes, const std::vector<AccountCopy::Process>& account,
                        kube::TimePoint at) {
  std::uint64_t by_driver = 0;
  for (const DriverProcess& process : processes) by_driver += process.memory_bytes;
  excesses_[looks_++ % excesses_.size()] = Excess(by_driver, most_by_account_);
  if (looks_ >= excesses_.size()) beside_ = std::ranges::min(excesses_);
  most_by_account_ = by_account_;

  const std::uint64_t escaped = EscapedOf(processes, account);
  if (escaped <= kTold) escaped_since_.reset();
  else if (!escaped_since_) escaped_since_ = at;
  escaped_ = escaped_since_ && at - *escaped_since_ >= kToldAfter ? escaped : 0;
}

}  // namespace grus
