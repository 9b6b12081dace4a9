// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/spec_campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "tests/campaign/spec_check.h"

namespace grus::testing {
namespace {

constexpr int kMostEdits = 5;  // Of a chain.

struct Entry {
  SpecPlan plan;
  SpecVerdict verdict{};
};

// Takes out the edits that break a rule of the CRD; the others are made without them.
int SkipBroken(SpecPlan& plan) {
  const std::size_t before = plan.edits.size();
  Json job = BaseObject(*plan.base);
  std::erase_if(plan.edits, [&](const SpecEdit& edit) {
    Json edited = Edited(job, edit);
    if (!BrokenRule(JobSchema(), edited).empty()) return true;
    job = std::move(edited);
    return false;
  });
  return static_cast<int>(before - plan.edits.size());
}

std::string Row(const char* format, auto... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Table(const std::vector<Entry>& entries, const std::map<std::string, int>& skipped) {
  struct Counts {
    int operations = 0, refused = 0, wrong = 0;
  };
  std::map<std::string, Counts> fields;
  for (const auto& [path, count] : skipped) fields[path];
  Counts chains;
  for (const Entry& entry : entries) {
    const bool is_single = entry.plan.edits.size() == 1;
    Counts& counts = is_single ? fields[entry.plan.edits[0].path] : chains;
    counts.operations += entry.verdict.operations;
    counts.refused += entry.verdict.refused;
    counts.wrong += !entry.verdict.wrong.empty();
  }
  const auto row = [&](const std::string& name, const Counts& counts, int skips) {
    return Row("%-40s %10d %8d %8d %12d\n", name.c_str(), counts.operations, counts.refused, skips, counts.wrong);
  };
  std::string table = Row("%-40s %10s %8s %8s %12s\n", "field", "operations", "refused", "skipped", "divergences");
  for (const auto& [path, counts] : fields) {
    const auto it = skipped.find(path);
    table += row(path, counts, it == skipped.end() ? 0 : it->second);
  }
  return table + row("several in a row", chains, 0);
}

}  // namespace

SpecCampaignReport RunSpecCampaign(const SpecCampaignOptions& options,
                                   const std::function<void(const std::string&)>& progress) {
  const auto started = std::chrono::steady_clock::now();
  SpecCampaignReport report;
  std::vector<Entry> entries;
  std::map<std::string, int> skipped;
  std::map<const SpecBase*, std::vector<SpecEdit>> edits;
  int planned = 0;
  for (const SpecBase& base : SpecBases()) {
    edits[&base] = EditsOf(JobSchema(), BaseObject(base));
    for (const SpecEdit& edit : edits[&base]) {
      SpecPlan plan{&base, 1, false, {edit}};
      if (SkipBroken(plan) > 0) {
        ++skipped[edit.path];
        ++report.skipped;
        continue;
      }
      planned += 2;
      entries.push_back({std::move(plan)});
    }
  }
  std::mt19937_64 random(options.seed);
  while (planned < options.operations) {
    const SpecBase& base = SpecBases()[random() % SpecBases().size()];
    SpecPlan plan{&base, 1 + random() % 1000, random() % 2 == 0, {}};
    for (std::size_t left = 2 + random() % (kMostEdits - 1); left > 0; --left) {
      plan.edits.push_back(edits[&base][random() % edits[&base].size()]);
    }
    report.skipped += SkipBroken(plan);
    if (plan.edits.size() < 2) continue;
    planned += static_cast<int>(plan.edits.size()) + 1;
    entries.push_back({std::move(plan)});
  }

  FreshDeploys fresh;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // Guards finished and the calls of `progress`.
  std::size_t finished = 0;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < (options.threads > 0 ? options.threads : cores); ++i) {
      crew.emplace_back([&] {
        for (std::size_t mine; (mine = next++) < entries.size();) {
          entries[mine].verdict = CheckPlan(entries[mine].plan, fresh);
          std::lock_guard lock(mutex);
          if (++finished % 200 == 0) {
            progress(std::to_string(finished) + " of " + std::to_string(entries.size()) + " plans");
          }
        }
      });
    }
  }
  for (const Entry& entry : entries) {
    ++report.plans;
    report.operations += entry.verdict.operations;
    report.refused += entry.verdict.refused;
    report.restarts += entry.verdict.restarts;
    if (entry.verdict.wrong.empty()) continue;
    ++report.failed;
    report.failures.push_back(ToText(entry.plan));
    for (const std::string& line : entry.verdict.wrong) report.failures.back() += "\n    " + line;
  }
  report.table = Table(entries, skipped);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

kube::Result<std::vector<std::string>> ReplaySpec(std::string_view text) {
  const kube::Result<SpecPlan> plan = ParsePlan(text);
  if (!plan) return plan.error();
  FreshDeploys fresh;
  return CheckPlan(*plan, fresh).wrong;
}

}  // namespace grus::testing
