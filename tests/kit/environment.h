// SPDX-License-Identifier: Apache-2.0
// Sets an environment variable for a scope. REQUIRES: no other thread reads the environment meanwhile.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace kube::testing {

class ScopedVariable {
 public:
  // nullptr unsets it.
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    Set(value);
  }
  ScopedVariable(const char* name, const std::string& value) : ScopedVariable(name, value.c_str()) {}
  ~ScopedVariable() { Set(old_ ? old_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace kube::testing
