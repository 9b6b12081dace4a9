// SPDX-License-Identifier: Apache-2.0
// A function with a stack of its own that can stop in the middle and go on later, on the same thread.
//
// Tells Address- and ThreadSanitizer of each switch. Not thread-safe.
#pragma once

#include <functional>
#include <memory>

namespace kube::testing {

class Fiber {
 public:
  // `body` begins at the first Resume(). An exception that leaves it ends the process, as from a std::thread.
  explicit Fiber(std::function<void()> body);
  ~Fiber();  // REQUIRES: has_ended(), or never resumed.

  void Resume();   // Runs it until it calls Suspend() or ends. REQUIRES: called from outside the fiber, not ended.
  void Suspend();  // Returns to the caller of Resume(). REQUIRES: called from inside.
  bool has_ended() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube::testing
