// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/cuda_share.h"

#include <algorithm>

#include "nodeagent/cuda/share_files.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {
namespace {

constexpr std::size_t kHexDigits = 16;
constexpr int kBitsOfMiB = 20;

std::string HexOf(std::uint64_t number) {
  std::string text(kHexDigits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4)
    *digit = "0123456789abcdef"[number & 15];
  return text;
}

// FNV-1a.
std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

bool BringsShare(PartResource resource) { return resource != PartResource::kCompute; }

std::string ShareName(PartResource resource, const std::vector<PartId>& ids) {
  std::string text(NameOf(resource));
  for (const PartId& id : ids) text.append("\n").append(ToText(id));
  return ids.front().gpu + "-" + HexOf(HashOf(text));
}

bool IsShareName(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || name.find('/') != std::string_view::npos) return false;
  const std::string_view gpu = name.substr(0, dash), hash = name.substr(dash + 1);
  return (gpu.starts_with("GPU-") || gpu.starts_with("MIG-")) && hash.size() == kHexDigits &&
         hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void AddCudaMounts(const CudaLibrary& library, const std::string& share, ContainerSetup& setup) {
  const std::string to = std::string(cuda::kFolderInContainer) + "/";
  setup.mounts.push_back({.host_path = library.library(), .container_path = kCudaLibraryInContainer});
  setup.mounts.push_back({.host_path = share + "/" + kPreloadFile, .container_path = kPreloadInContainer});
  setup.mounts.push_back({.host_path = share + "/" + cuda::kLimitsFile, .container_path = to + cuda::kLimitsFile});
  setup.mounts.push_back({.host_path = share + "/" + cuda::kAccountFile,
                          .container_path = to + cuda::kAccountFile,
                          .is_read_only = false});
}

ShareLimits LimitsOf(const std::string& gpu, std::int64_t memory_mib, std::int64_t milli, std::int64_t context_mib) {
  const auto limited = static_cast<std::uint32_t>(std::clamp<std::int64_t>(milli, 0, kMilliOfGpu));
  return {.gpu = gpu,
          .memory_bytes = static_cast<std::uint64_t>(memory_mib) << kBitsOfMiB,
          .context_bytes = static_cast<std::uint64_t>(context_mib) << kBitsOfMiB,
          .milli = limited,
          .rate_milli = limited == 0 ? cuda::kWholeGpu : limited};
}

std::optional<ShareLimits> ShareLimitsOf(const HeldParts& holder, std::span<const SharedGpu> gpus,
                                         std::int64_t context_mib) {
  const std::vector<GpuPart> parts = PartsByGpu(holder, gpus);
  // No memory would mean no limit.
  if (parts.size() != 1 || parts.front().memory_mib <= 0) return std::nullopt;
  ShareLimits limits = LimitsOf(parts.front().gpu, parts.front().memory_mib, parts.front().milli, context_mib);
  limits.paged_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(holder.paged_mib.value_or(0), 0))
                       << kBitsOfMiB;
  return limits;
}

}  // namespace grus
