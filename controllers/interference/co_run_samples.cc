// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/co_run_samples.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <tuple>

namespace grus {
namespace {

auto KeyOf(const CoRunSample& sample) { return std::tie(sample.job, sample.partner, sample.gpu_type); }

// FNV-1a of 64 bits, then mixed so that the high bits depend on the last byte as well (the end of MurmurHash3). The
// same on every machine, unlike std::hash.
class StableHash {
 public:
  void Add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) AddByte(value >> (8 * byte) & 0xff);
  }
  void Add(const std::string& text) {
    Add(text.size());
    for (const char c : text) AddByte(static_cast<unsigned char>(c));
  }
  void Add(const SharedJob& job) {
    Add(job.fingerprint);
    Add(job.family);
    for (const auto feature : kSoloFeatures) Add(std::bit_cast<std::uint64_t>((job.solo.*feature).value_or(-1)));
  }
  std::uint64_t value() const {
    std::uint64_t mixed = hash_;
    mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdu;
    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53u;
    return mixed ^ (mixed >> 33);
  }

 private:
  void AddByte(std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

std::uint64_t HashOf(const CoRunSample& sample) {
  StableHash hash;
  hash.Add(sample.job);
  hash.Add(sample.partner);
  hash.Add(sample.gpu_type);
  hash.Add(std::bit_cast<std::uint64_t>(sample.speed));  // Tells samples without names or features apart.
  return hash.value();
}

}  // namespace

std::vector<CoRunSample> MergeSamples(std::vector<CoRunSample> samples) {
  std::ranges::stable_sort(samples, [](const CoRunSample& a, const CoRunSample& b) {
    return std::tie(a.job, a.partner, a.gpu_type, a.speed, a.count) <
           std::tie(b.job, b.partner, b.gpu_type, b.speed, b.count);
  });
  std::vector<CoRunSample> merged;
  for (CoRunSample& sample : samples) {
    // Without names, jobs of equal features are not the same.
    const bool is_named = !sample.job.fingerprint.empty() && !sample.partner.fingerprint.empty();
    if (!merged.empty() && is_named && KeyOf(merged.back()) == KeyOf(sample)) {
      CoRunSample& same = merged.back();
      same.speed = (same.speed * same.count + sample.speed * sample.count) / (same.count + sample.count);
      same.count = std::min(same.count + sample.count, kMaxCount);
    } else {
      merged.push_back(std::move(sample));
    }
  }
  return merged;
}

std::vector<CoRunSample> DrawEvenly(std::vector<CoRunSample> samples) {
  if (samples.size() <= kMaxCoRunSamples) return samples;
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::size_t>>> by_type;
  for (std::size_t i = 0; i < samples.size(); ++i) by_type[samples[i].gpu_type].emplace_back(HashOf(samples[i]), i);
  // The first of each type, then the second of each: that gives every type as much, until it has no more.
  std::vector<std::tuple<std::size_t, std::uint64_t, std::size_t>> turns;
  for (auto& [type, hashed] : by_type) {
    std::ranges::sort(hashed);
    for (std::size_t rank = 0; rank < hashed.size(); ++rank) {
      turns.emplace_back(rank, hashed[rank].first, hashed[rank].second);
    }
  }
  std::ranges::sort(turns);
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < kMaxCoRunSamples; ++i) drawn.push_back(std::get<2>(turns[i]));
  std::ranges::sort(drawn);
  std::vector<CoRunSample> result;
  for (const std::size_t i : drawn) result.push_back(std::move(samples[i]));
  return result;
}

}  // namespace grus
