// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/gpu_time.h"

#include <algorithm>
#include <bit>

namespace grus::cuda {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond, kSecond = 1000 * kMillisecond;

// A second may hold 8 points more than the share: 80 ms for what was saved, and for a quantum of error.
constexpr std::uint64_t kLeastSaved = 10 * kMillisecond, kMostSaved = 50 * kMillisecond;
// A bound for errors: no program waits longer than this at a share of 1.
constexpr std::int64_t kMostDebt = 10 * static_cast<std::int64_t>(kSecond);
// Who may have the whole GPU for now has launched no more than this ahead: it must run before another's share comes
// back.
constexpr std::uint64_t kMostAhead = 20 * kMillisecond;
// A process that alone launched for so long is taken for the only one of its container that does.
constexpr std::uint64_t kAloneFor = kSecond;
// Debt is paid until what is earned in so long is there, so that a sleep (50 us late at best) admits many short
// launches. While others run as well, these come in the GPU's turns, about 2 ms each, and begin with one of their own:
// over many turns that is little. It varies, so that launches do not fall into step with the turns.
constexpr std::uint64_t kLeastPause = 12 * kMillisecond, kPauseRange = 2 * kLeastPause;
constexpr std::uint64_t kLeastQuantum = 3 * kMillisecond, kMostQuantum = 22 * kMillisecond;
constexpr std::uint64_t kFillEvery = 50 * kMicrosecond;
constexpr std::uint64_t kLeastWait = 20 * kMicrosecond, kMostWait = 5 * kMillisecond;
// An agent that has not written for so long has gone: what it lent has, too.
constexpr std::uint64_t kAgentGone = 2 * kSecond;

constexpr std::uint64_t kFirstGuess = 50 * kMicrosecond;
// While a key is little known, no more than 2^(times measured) launches of it may be unmeasured: the next one waits,
// for so long at most, and is then charged the time since.
constexpr std::uint64_t kWaitForMeasure = kSecond;
// A mark costs about 3 us: with launches of 1 ms and more each is marked (0.3 %), of short ones one in 128 (25 ns
// each).
constexpr std::uint64_t kMarkEvery = std::uint64_t{1} << 20;
constexpr std::uint32_t kMostToOneMark = 128;
// After a pause the launches before it get a mark of their own.
constexpr std::uint64_t kPause = kMillisecond;
// A launch that starts so late had others before it in its stream.
constexpr std::uint64_t kQueued = 50 * kMicrosecond;

// Chance makes what marks say of others too much and too little by turns; more than this is an error.
constexpr std::int64_t kMostCarried = 2 * static_cast<std::int64_t>(kMillisecond);
constexpr std::uint64_t kNewKey = 2;                           // Stands for all keys that were never measured.
constexpr std::uint32_t kAll = 1024, kMostOverlap = kAll - 8;  // Of overlap_.

// Even for times that differ little or by a fixed step: programs that alternate must not meet a pattern.
std::uint32_t Scattered(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9;
  return static_cast<std::uint32_t>(value >> 32);
}

// The balance that lets a launch go that will take so long.
std::int64_t Wanted(std::uint32_t rate, std::uint64_t pause, std::uint64_t took) {
  // With the whole GPU one launch may wait behind another, however long these are.
  if (rate >= kWholeGpu)
    return static_cast<std::int64_t>(pause == 0 ? 0 : kLeastQuantum) - static_cast<std::int64_t>(took);
  return pause == 0 ? 1 : static_cast<std::int64_t>(std::clamp(pause * rate / kWholeGpu, kLeastQuantum, kMostQuantum));
}

}  // namespace

void GpuTimeLaw::Bind(const Limits& limits, std::size_t gpu, GpuTime& time, std::uint32_t process) {
  files_ = &limits;
  limits_ = &limits.gpus[gpu];
  time_ = &time;
  process_ = process;
}

GpuTimeLaw::Unmarked& GpuTimeLaw::Of(std::uint64_t stream) { return unmarked_[Scattered(stream) % kStreams]; }

// Thousandths that the container may have now.
std::uint32_t GpuTimeLaw::Rate(std::uint64_t now) const {
  const std::uint32_t milli = limits_->milli;
  if (milli == 0) return kWholeGpu;
  const std::uint32_t rate = limits_->rate.load(kRelaxed);
  const std::uint64_t beat = files_->beat.load(kRelaxed);
  return rate == 0 || (now > beat && now - beat > kAgentGone) ? milli : rate;
}

// Fills the balance up to `now` and returns it.
std::int64_t GpuTimeLaw::Fill(std::uint64_t now, std::uint32_t rate) {
  std::uint64_t filled = time_->filled.load(kRelaxed);
  // A time that is far ahead is an error of another process: it must not stop this one.
  const bool wrong = filled > now + kSecond;
  if (!wrong && now < filled + kFillEvery) return time_->balance.load(kRelaxed);
  if (!time_->filled.compare_exchange_strong(filled, now, kRelaxed)) return time_->balance.load(kRelaxed);

  const std::uint64_t share = std::min(rate, kWholeGpu);
  const auto most = static_cast<std::int64_t>(
      share == kWholeGpu ? kMostAhead : std::clamp(share * 100 * kMicrosecond, kLeastSaved, kMostSaved));
  const std::uint64_t elapsed = wrong ? 0 : std::min(now - filled, 100 * kSecond);
  const auto earned = static_cast<std::int64_t>(filled == 0 ? kLeastSaved : elapsed * share / kWholeGpu);
  std::int64_t balance = time_->balance.load(kRelaxed);
  std::int64_t next;
  do {
    next = std::min(most, std::max(balance, -kMostDebt) + earned);
  } while (!time_->balance.compare_exchange_weak(balance, next, kRelaxed));
  return next;
}

void GpuTimeLaw::Charge(std::int64_t ns) {
  time_->balance.fetch_sub(ns, kRelaxed);
  time_->charged.fetch_add(static_cast<std::uint64_t>(ns), kRelaxed);
}

Admission GpuTimeLaw::Admit(std::uint64_t now, std::uint64_t key, std::uint64_t stream) {
  const LaunchCost own = costs_.Find(key);
  const bool is_new = own.ns == 0;
  // What is waited for: also those of all new keys together.
  const LaunchCost cost = is_new && own.unmeasured == 0 ? costs_.Find(kNewKey) : own;
  Admission admission{
      .took = cost.ns != 0 ? cost.ns : kFirstGuess, .count = own.learned < LaunchCosts::kMostLearned, .is_new = is_new};
  admission.one_in =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kMarkEvery / admission.took, 1, kMostToOneMark));
  const std::uint32_t unmeasured = std::uint32_t{1} << cost.learned;  // So many may be.
  if (admission.count) admission.one_in = std::min(admission.one_in, std::max((1u << own.learned) / 4, 1u));

  const std::uint32_t rate = Rate(now);
  const std::int64_t balance = Fill(now, rate);
  if (limits_->milli != 0 && limits_->milli < kWholeGpu) {
    if (cost.learned < LaunchCosts::kMostLearned && cost.unmeasured >= unmeasured) {
      const std::uint64_t since = now > cost.since ? now - cost.since : 0;
      if (since < kWaitForMeasure) {
        admission.wait = std::clamp(since / 4, kLeastWait, kMostWait);
        return admission;
      }
      admission.took = std::max(admission.took, kWaitForMeasure);
      costs_.Restart(is_new && own.unmeasured == 0 ? kNewKey : key);
    }
    const std::uint64_t pause = pause_.load(kRelaxed);
    const std::int64_t wanted = Wanted(rate, pause, admission.took);
    if (balance < wanted) {
      if (rate >= kWholeGpu) ForgetDebt(now);
      if (pause == 0) pause_.store(kLeastPause + Scattered(now) % kPauseRange, kRelaxed);
      admission.wait =
          std::clamp(static_cast<std::uint64_t>(wanted - balance) * kWholeGpu / rate, kLeastWait, kMostWait);
      return admission;
    }
    if (pause != 0) pause_.store(0, kRelaxed);
    admission.was_held = pause != 0;
  }
  admission.cost = admission.took * (kAll - std::min(overlap_.load(kRelaxed), kMostOverlap)) / kAll;
  const Unmarked& unmarked = Of(stream);
  const bool after_pause = unmarked.charged.load(kRelaxed) != 0 && now > unmarked.last.load(kRelaxed) + kPause;
  // The last one before launches wait tells how long all before it took.
  const bool is_last = rate < kWholeGpu && balance - static_cast<std::int64_t>(admission.cost) <= 0;
  if (after_pause || admission.was_held || is_last || (admission.count && own.unmeasured + 1 == 1u << own.learned)) {
    admission.one_in = 1;  // It stands for itself only: it was not chosen by chance.
  }
  admission.mark = admission.one_in == 1 || Scattered(now ^ key) % admission.one_in == 0;
  return admission;
}

Mark GpuTimeLaw::Launched(std::uint64_t now, std::uint64_t key, std::uint64_t stream, const Admission& admission) {
  Charge(static_cast<std::int64_t>(admission.cost));
  if (time_->launcher.load(kRelaxed) != process_) {
    time_->launcher.store(process_, kRelaxed);
    time_->launcher_since.store(now, kRelaxed);
  }
  if (admission.count) costs_.Count(key, now);
  if (admission.is_new) costs_.Count(kNewKey, now);
  Unmarked& unmarked = Of(stream);
  if (!admission.mark) {
    if (unmarked.charged.fetch_add(admission.cost, kRelaxed) == 0) unmarked.begin.store(now, kRelaxed);
    unmarked.took.fetch_add(admission.took, kRelaxed);
    unmarked.last.store(now, kRelaxed);
    return {};
  }
  const std::uint64_t before = unmarked.charged.exchange(0, kRelaxed);
  marked_.fetch_add(admission.cost + before, kRelaxed);
  return {.key = key,
          .stream = stream,
          .launched = now,
          .took = admission.took,
          .before = unmarked.took.exchange(0, kRelaxed),
          .charged = admission.cost + before,
          .begin = before == 0 ? now : unmarked.begin.load(kRelaxed),
          .last = before == 0 ? now : unmarked.last.load(kRelaxed),
          .one_in = admission.one_in,
          .is_new = admission.is_new,
          .was_held = admission.was_held};
}

void GpuTimeLaw::Learn(const Mark& mark, std::uint64_t took) {
  costs_.Learn(mark.key, took);
  if (mark.is_new) costs_.Learn(kNewKey, took);
}

// A short one is of those that the next mark of its stream stands for.
void GpuTimeLaw::Dropped(const Mark& mark) {
  Learn(mark, mark.took);
  marked_.fetch_sub(mark.charged, kRelaxed);
  if (mark.took >= kMarkEvery) return;
  Unmarked& unmarked = Of(mark.stream);
  if (unmarked.charged.fetch_add(mark.charged, kRelaxed) == 0) unmarked.begin.store(mark.begin, kRelaxed);
  unmarked.took.fetch_add(mark.before + mark.took, kRelaxed);
  unmarked.last.store(std::max(unmarked.last.load(kRelaxed), mark.launched), kRelaxed);
}

// Charges the launches before the mark that were not marked. They took what they were thought to, and for each that is
// like the marked one, by how much that was wrong. If the marked one had to wait for them in its stream, the GPU was
// busy since it was launched. If they must have ended by then, it waited for a copy or for another container's turn:
// that is not charged, but for the first launch of those that were held back, which is as good as a turn of theirs.
void GpuTimeLaw::ChargeBefore(const Mark& mark, std::uint64_t start, std::uint64_t took, Used& used) {
  Unmarked& unmarked = Of(mark.stream);
  const std::uint64_t begin = std::max(mark.begin, unmarked.measured_until);
  if (begin >= start) return;
  const std::int64_t thought =
      unmarked.carried + static_cast<std::int64_t>(mark.before) +
      (static_cast<std::int64_t>(took) - static_cast<std::int64_t>(mark.took)) * (std::int64_t{mark.one_in} - 1);
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(thought, 0));
  const bool waited = start > mark.launched + kQueued && (mark.was_held || begin + wanted > mark.launched);
  const std::uint64_t until = waited ? std::max(mark.launched, begin) : start;

  // They ran from when the first was launched, for as long as launches came, or as they took; the part of it that is
  // before `until` is theirs.
  const std::uint64_t length = std::max({mark.last > begin ? mark.last - begin : 0, wanted, std::uint64_t{1}});
  const std::uint64_t end = std::min(begin + length, until);
  const double part = static_cast<double>(end - begin) / static_cast<double>(length);
  const std::uint64_t ran = std::min(static_cast<std::uint64_t>(static_cast<double>(wanted) * part), end - begin);
  unmarked.carried = waited ? 0 : std::clamp(thought - static_cast<std::int64_t>(ran), -kMostCarried, kMostCarried);
  used.took += ran + (start - until);
  used.charged += AddBusy(*time_, begin, end, ran) + AddBusy(*time_, until, start, start - until);
}

// With the whole GPU the balance says no more than how much is launched ahead; what else it says are errors. What other
// processes of the container have launched is not known here.
void GpuTimeLaw::ForgetDebt(std::uint64_t now) {
  const bool is_alone =
      time_->launcher.load(kRelaxed) == process_ && now > time_->launcher_since.load(kRelaxed) + kAloneFor;
  if (!is_alone) return;
  std::uint64_t ahead = marked_.load(kRelaxed);
  for (const Unmarked& unmarked : unmarked_) ahead += unmarked.charged.load(kRelaxed);
  const std::int64_t least = static_cast<std::int64_t>(kMostAhead) - static_cast<std::int64_t>(ahead);
  std::int64_t balance = time_->balance.load(kRelaxed);
  while (balance < least && !time_->balance.compare_exchange_weak(balance, least, kRelaxed)) {
  }
}

void GpuTimeLaw::Completed(std::uint64_t now, const Mark& mark, std::uint64_t start, std::uint64_t end) {
  end = std::min(end, now);
  start = std::min(start, end);
  const std::uint64_t took = end - start;
  Used used{.took = took, .charged = AddBusy(*time_, start, end, took)};
  ChargeBefore(mark, start, took, used);
  Charge(static_cast<std::int64_t>(used.charged) - static_cast<std::int64_t>(mark.charged));
  marked_.fetch_sub(mark.charged, kRelaxed);
  if (Rate(now) >= kWholeGpu) ForgetDebt(now);
  Unmarked& unmarked = Of(mark.stream);
  unmarked.measured_until = std::max(unmarked.measured_until, end);

  const std::uint32_t overlap = std::min(overlap_.load(kRelaxed), kMostOverlap);
  if (used.took > 0) {
    const auto seen = static_cast<std::uint32_t>(kAll - used.charged * kAll / used.took);
    overlap_.store((overlap * 7 + seen) / 8, kRelaxed);
  }
  Learn(mark, took);
}

}  // namespace grus::cuda
