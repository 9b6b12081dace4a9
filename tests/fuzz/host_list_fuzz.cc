// SPDX-License-Identifier: Apache-2.0
// ReadHostList() of a ConfigMap that anybody may have edited: when it was published on the first line, then
// the host list. Rules: a list written and read again is equal; the next list is newer.
#include "controllers/elastic/host_plan.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::Text(data, size);
  kube::ConfigMap config_map;
  config_map.metadata.annotations.insert_or_assign(grus::kPublishedAnnotation, fuzz::Cut(text, '\n'));
  config_map.data["hosts"] = std::string(text);
  const std::optional<grus::HostList> list = grus::ReadHostList(config_map);
  if (!list) return 0;
  config_map.data["hosts"] = grus::HostListText(*list);
  const std::optional<grus::HostList> again = grus::ReadHostList(config_map);
  fuzz::Require(again && again->hosts == list->hosts && again->revision == list->revision, "a list is read as written");

  grus::View view;
  view.now = kube::Time{kube::WallTime(std::chrono::seconds(1767323045))};
  view.hosts = *list;
  grus::Worker& worker = view.pods.emplace_back();
  worker.name = "bert-workers-0";
  worker.is_bound = worker.is_ready = true;
  worker.address = "10.0.0.1";
  const grus::HostPlan plan = grus::PlanHosts(view, {}, {});
  fuzz::Require(plan.list == *list || plan.list.revision > list->revision, "a changed list is newer");
  fuzz::Require(grus::FirstHosts(view, {}, {}).revision > list->revision, "a new launcher's list is newer");
  return 0;
}
