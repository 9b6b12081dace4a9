// SPDX-License-Identifier: Apache-2.0
#include "bench/usage_player.h"

#include <algorithm>

namespace bench {
namespace {

std::uint64_t Mixed(std::uint64_t bits) {  // SplitMix64.
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

void AddLine(std::string& text, const char* name, const std::string& labels, std::int64_t value) {
  text.append(name).append(labels).append(std::to_string(value)).push_back('\n');
}

}  // namespace

kube::Result<std::unique_ptr<UsagePlayer>> UsagePlayer::Start() {
  std::unique_ptr<UsagePlayer> player(new UsagePlayer);
  kube::HttpServerLimits limits;
  limits.write_time = std::chrono::seconds(60);
  const auto scrape = [raw = player.get()](const kube::ServedRequest&) {
    return kube::HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", raw->Scrape()};
  };
  auto server = kube::HttpServer::Start("127.0.0.1:0", {{"/metrics", scrape}}, limits);
  if (!server) return std::move(server).error();
  player->server_ = *std::move(server);
  return player;
}

void UsagePlayer::Add(std::vector<kube::ObjectKey> pods_of_job) {
  std::lock_guard lock(mutex_);
  jobs_.push_back({.pods = std::move(pods_of_job)});
}

void UsagePlayer::Remove(std::size_t job) {
  std::lock_guard lock(mutex_);
  jobs_[job].is_there = false;
}

UsagePlayer::Seen UsagePlayer::SeenOf(std::size_t job) const {
  std::lock_guard lock(mutex_);
  return jobs_[job].seen;
}

int UsagePlayer::scrapes() const {
  std::lock_guard lock(mutex_);
  return scrapes_;
}

std::string UsagePlayer::Scrape() {
  std::lock_guard lock(mutex_);
  ++scrapes_;
  std::string text;
  text.reserve(last_size_ + 4096);
  std::uint64_t place = 0;
  for (Job& job : jobs_) {
    place += 1000;
    if (!job.is_there) continue;
    ++job.seen.scrapes;
    for (std::size_t at = 0; at < job.pods.size(); ++at) {
      const kube::ObjectKey& pod = job.pods[at];
      const std::uint64_t random = Mixed(Mixed(place + at) + static_cast<std::uint64_t>(scrapes_));
      const auto utilization = static_cast<std::int64_t>(random % 96);
      const auto memory = static_cast<std::int64_t>(1000 + (random >> 8) % 70000);
      job.seen.most_utilization_percent = std::max(job.seen.most_utilization_percent, utilization);
      job.seen.most_memory_mib = std::max(job.seen.most_memory_mib, memory);
      const std::string whose = "namespace=\"" + pod.ns + "\",pod=\"" + pod.name + "\"";
      const std::string gpu = "{gpu=\"0\",UUID=\"GPU-" + pod.name + "\",modelName=\"NVIDIA A100\"," + whose + "} ";
      AddLine(text, "DCGM_FI_DEV_GPU_UTIL", gpu, utilization);
      AddLine(text, "DCGM_FI_DEV_FB_USED", gpu, memory);
      AddLine(text, "DCGM_FI_DEV_MEM_COPY_UTIL", gpu, utilization / 2);
      const std::string container = "{container=\"worker\",id=\"/kubepods/" + pod.name + "\"," + whose + "} ";
      AddLine(text, "container_cpu_usage_seconds_total", container, std::int64_t{10} * scrapes_);
      AddLine(text, "container_memory_working_set_bytes", container, memory << 16);
      AddLine(text, "container_fs_reads_bytes_total", container, std::int64_t{1000000} * scrapes_);
      AddLine(text, "container_fs_writes_bytes_total", container, std::int64_t{1000} * scrapes_);
      const std::string network = "{interface=\"eth0\",id=\"/kubepods/" + pod.name + "\"," + whose + "} ";
      AddLine(text, "container_network_receive_bytes_total", network, std::int64_t{5000000} * scrapes_);
      AddLine(text, "container_network_transmit_bytes_total", network, std::int64_t{5000000} * scrapes_);
    }
  }
  last_size_ = text.size();
  return text;
}

}  // namespace bench
