// SPDX-License-Identifier: Apache-2.0
// A value or an Error.
//
//   Result<Workers> got = client.Get(...);
//   if (!got) return std::move(got).error().with("read workers");
//   Use(*got);
#pragma once

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

#include "clientlib/base/error.h"

namespace kube {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  // REQUIRES: ok().
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  Error& error() & { return *Checked(std::get_if<1>(&state_)); }
  const Error& error() const& { return *Checked(std::get_if<1>(&state_)); }
  Error&& error() && { return std::move(*Checked(std::get_if<1>(&state_))); }

 private:
  template <typename P>
  static P* Checked(P* p) {
    assert(p != nullptr && "a Result was read as what it is not");
    return p;
  }
  T& value() { return *Checked(std::get_if<0>(&state_)); }
  const T& value() const { return *Checked(std::get_if<0>(&state_)); }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return !error_; }
  bool ok() const { return !error_; }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// Of two done beside each other: the first failure, to be tried again no sooner than either was asked to wait.
inline Status FirstFailure(Status a, Status b) {
  if (a) return b;
  if (b || !b.error().retry_after()) return a;
  const Duration longest = std::max(*b.error().retry_after(), a.error().retry_after().value_or(Duration::zero()));
  return std::move(a).error().with_retry_after(longest);
}

}  // namespace kube
