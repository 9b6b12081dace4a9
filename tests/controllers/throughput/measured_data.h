// SPDX-License-Identifier: Apache-2.0
// The public measurements in bench/data, and how well fits on a part of them foretell the rest.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "controllers/throughput/throughput_fit.h"
#include "tests/kit/tree_file.h"

namespace grus {

// The lines below the header, as fields.
inline std::vector<std::vector<std::string>> ReadTable(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    rows.emplace_back();
    std::stringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

// Models on which priors and the calibration of the band were chosen, and those that were kept apart from that.
inline const std::vector<std::string> kChosenOn = {"bert", "cifar10", "imagenet", "deepspeech2"};
inline const std::vector<std::string> kKeptApart = {"yolov3", "ncf"};

struct PolluxModel {
  std::map<std::string, std::vector<Measurement>> by_placement;  // "44" is two nodes of four.
  std::vector<Measurement> large;                                // 6 to 64 GPUs.
  std::vector<double> batch_sizes;                               // Of `large`, ascending.
};

inline PolluxModel ReadPollux(const std::string& model) {
  const std::filesystem::path folder = kit::TreePath("bench/data/pollux/traces") / model;
  PolluxModel data;
  for (const auto& row : ReadTable(folder / "placements.csv")) {
    Measurement m;
    m.size.nodes = static_cast<int>(row[0].size());
    m.size.replicas = 0;
    for (const char digit : row[0]) m.size.replicas += digit - '0';
    m.size.local_batch_size = std::stod(row[1]);
    m.step_seconds = std::stod(row[2]);
    data.by_placement[row[0]].push_back(m);
  }
  for (const auto& row : ReadTable(folder / "scalability.csv")) {
    data.large.push_back({{std::stoi(row[0]), std::stoi(row[1]), std::stod(row[2])}, std::stod(row[3])});
    data.batch_sizes.push_back(data.large.back().size.local_batch_size);
  }
  std::sort(data.batch_sizes.begin(), data.batch_sizes.end());
  data.batch_sizes.erase(std::unique(data.batch_sizes.begin(), data.batch_sizes.end()), data.batch_sizes.end());
  return data;
}

// 15 measurements on 8 GPUs or fewer: two batch sizes on eight placements, drawn by `seed`. One GPU is among them, as
// it is in any trial.
inline std::vector<Measurement> DrawTrial(const PolluxModel& data, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> batch_sizes = data.batch_sizes;
  std::shuffle(batch_sizes.begin(), batch_sizes.end(), random);
  std::vector<std::string> placements;
  for (const auto& [placement, measurements] : data.by_placement) {
    if (placement != "1" && measurements.front().size.replicas <= 8) placements.push_back(placement);
  }
  std::shuffle(placements.begin(), placements.end(), random);
  placements.resize(7);
  placements.emplace_back("1");
  std::vector<Measurement> trial;
  for (const std::string& placement : placements) {
    for (const Measurement& m : data.by_placement.at(placement)) {
      if (m.size.local_batch_size == batch_sizes[0] || m.size.local_batch_size == batch_sizes[1]) trial.push_back(m);
    }
  }
  std::shuffle(trial.begin(), trial.end(), random);
  if (trial.size() > 15) trial.resize(15);
  return trial;
}

struct Accuracy {
  double mean_error = 0;    // Of the step time, relative.
  double coverage = 0;      // Share of the measurements that lie in the 90 % band.
  double median_ratio = 0;  // high / low of the band
};

inline Accuracy AccuracyOf(const ThroughputFit& fit, const std::vector<Measurement>& truth) {
  Accuracy accuracy;
  std::vector<double> ratios;
  const auto count = static_cast<double>(truth.size());
  for (const Measurement& m : truth) {
    const Prediction p = *Predict(fit, m.size);
    accuracy.mean_error += std::abs(p.step_seconds / m.step_seconds - 1) / count;
    accuracy.coverage += (p.low <= m.step_seconds && m.step_seconds <= p.high ? 1 : 0) / count;
    ratios.push_back(p.high / p.low);
  }
  std::sort(ratios.begin(), ratios.end());
  accuracy.median_ratio = ratios[ratios.size() / 2];
  return accuracy;
}

// Step times on 1, 2, 4 and 8 GPUs of one node, by job.
struct GavelJob {
  std::string name;
  std::vector<Measurement> small;  // 1, 2 and 4 GPUs.
  Measurement large;               // 8 GPUs.
};

inline std::vector<GavelJob> ReadGavel(const std::string& gpu_type) {
  std::map<std::string, std::vector<Measurement>> jobs;
  for (const auto& row : ReadTable(kit::TreePath("bench/data/gavel/isolated_throughputs.csv"))) {
    if (row[0] != gpu_type) continue;
    const int gpus = std::stoi(row[3]);
    jobs[row[1] + " " + row[2]].push_back({{1, gpus, std::stod(row[2])}, gpus / std::stod(row[4])});
  }
  std::vector<GavelJob> complete;
  for (auto& [name, all] : jobs) {
    if (all.size() != 4) continue;
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size.replicas < b.size.replicas; });
    complete.push_back({name, {all.begin(), all.end() - 1}, all.back()});
  }
  return complete;
}

}  // namespace grus
