// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/simulation/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <utility>

// Functions of the sanitizers (sanitizer/common_interface_defs.h, tsan_interface.h); null if none is linked in.
extern "C" {
void __sanitizer_start_switch_fiber(void** saved, const void* bottom, std::size_t size) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* saved, const void** bottom, std::size_t* size) __attribute__((weak));
void* __tsan_get_current_fiber() __attribute__((weak));
void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));
}

namespace kube::testing {
namespace {

// Parsers recurse up to their depth limits, and sanitizers make frames several times as large. Only pages that are
// touched cost memory.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

// Has a guard page below it, so that an overflow crashes at once.
class Stack {
 public:
  Stack() : guard_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    base_ = mmap(nullptr, guard_ + kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base_ == MAP_FAILED || mprotect(base_, guard_, PROT_NONE) != 0) std::abort();
  }
  ~Stack() { munmap(base_, guard_ + kStackBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* bottom() const { return static_cast<char*>(base_) + guard_; }

 private:
  const std::size_t guard_;
  void* base_;
};

}  // namespace

struct Fiber::Impl {
  static void Enter(unsigned low, unsigned high);
  void Run();

  // The two ends of a switch, for AddressSanitizer. `saved` is where the side that is left keeps its state; null if it
  // never resumes.
  static void BeginSwitch(void** saved, const void* bottom, std::size_t size);
  static void EndSwitch(void* saved, const void** from_bottom, std::size_t* from_size);

  std::function<void()> body;
  Stack stack;
  ucontext_t inside{}, outside{};
  bool has_begun = false, has_ended = false;
  void *inside_saved = nullptr, *outside_saved = nullptr;
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
  void *tsan_inside = nullptr, *tsan_outside = nullptr;
};

void Fiber::Impl::BeginSwitch(void** saved, const void* bottom, std::size_t size) {
  if (__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(saved, bottom, size);
}

void Fiber::Impl::EndSwitch(void* saved, const void** from_bottom, std::size_t* from_size) {
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(saved, from_bottom, from_size);
}

Fiber::Fiber(std::function<void()> body) : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.body = std::move(body);
  if (__tsan_create_fiber != nullptr) impl.tsan_inside = __tsan_create_fiber(0);
  getcontext(&impl.inside);
  impl.inside.uc_stack.ss_sp = impl.stack.bottom();
  impl.inside.uc_stack.ss_size = kStackBytes;
  impl.inside.uc_link = nullptr;
  // makecontext() passes ints: the pointer goes in two halves.
  const auto address = reinterpret_cast<std::uintptr_t>(&impl);
  const auto enter = reinterpret_cast<void (*)()>(&Impl::Enter);
  makecontext(&impl.inside, enter, 2, static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
}

Fiber::~Fiber() {
  assert((impl_->has_ended || !impl_->has_begun) && "a fiber is destroyed in the middle");
  if (impl_->tsan_inside != nullptr) __tsan_destroy_fiber(impl_->tsan_inside);
}

bool Fiber::has_ended() const { return impl_->has_ended; }

void Fiber::Impl::Enter(unsigned low, unsigned high) {
  reinterpret_cast<Impl*>(std::uintptr_t{high} << 32 | low)->Run();
}

void Fiber::Impl::Run() {
  EndSwitch(nullptr, &outside_bottom, &outside_size);
  // At each switch to a stack of known size, AddressSanitizer clears what it knows of the stack. Once is right, because
  // another fiber may have used this memory. Later it costs two system calls and hides errors in suspended frames.
  if (__sanitizer_start_switch_fiber != nullptr) inside.uc_stack.ss_size = 0;
  body();
  body = nullptr;
  has_ended = true;
  BeginSwitch(nullptr, outside_bottom, outside_size);
  if (tsan_outside != nullptr) __tsan_switch_to_fiber(tsan_outside, 0);
  setcontext(&outside);
}

void Fiber::Resume() {
  Impl& impl = *impl_;
  assert(!impl.has_ended && "an ended fiber is resumed");
  impl.has_begun = true;
  Impl::BeginSwitch(&impl.outside_saved, impl.stack.bottom(), kStackBytes);
  if (impl.tsan_inside != nullptr) {
    impl.tsan_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(impl.tsan_inside, 0);
  }
  swapcontext(&impl.outside, &impl.inside);
  Impl::EndSwitch(impl.outside_saved, nullptr, nullptr);
}

void Fiber::Suspend() {
  Impl& impl = *impl_;
  Impl::BeginSwitch(&impl.inside_saved, impl.outside_bottom, impl.outside_size);
  if (impl.tsan_outside != nullptr) __tsan_switch_to_fiber(impl.tsan_outside, 0);
  swapcontext(&impl.inside, &impl.outside);
  Impl::EndSwitch(impl.inside_saved, &impl.outside_bottom, &impl.outside_size);
}

}  // namespace kube::testing
