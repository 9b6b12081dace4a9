// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/host_list.h"

#include <algorithm>
#include <sstream>

#include "controllers/policy/decimal.h"

namespace grus {
namespace {

constexpr std::string_view kRevisionWord = "revision ";
// Each list counts one up, so no job comes near; a larger revision was written by hand.
constexpr std::int64_t kMostRevision = 1'000'000'000'000'000;

}  // namespace

bool HostList::Has(const std::string& pod) const {
  return std::any_of(hosts.begin(), hosts.end(), [&](const Host& host) { return host.pod == pod; });
}

std::int64_t RevisionOfHostList(std::string_view text) {
  if (!text.starts_with(kRevisionWord)) return 0;
  const std::string_view first = text.substr(0, text.find('\n'));
  const std::int64_t revision = ParseInteger(first.substr(kRevisionWord.size())).value_or(0);
  return revision >= 0 && revision <= kMostRevision ? revision : 0;
}

std::string HostListText(const HostList& list) {
  std::string text = std::string(kRevisionWord) + std::to_string(list.revision) + "\n";
  for (const Host& host : list.hosts) {
    text.append(host.address).append(":").append(std::to_string(list.slots)).append(" ").append(host.pod).append("\n");
  }
  return text;
}

std::optional<HostList> ReadHostList(const kube::ConfigMap& config_map) {
  const auto text = config_map.data.find("hosts");
  if (text == config_map.data.end() || !text->second.starts_with(kRevisionWord)) return std::nullopt;
  HostList list;
  list.revision = RevisionOfHostList(text->second);
  std::istringstream lines(text->second);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':'), blank = line.find(' ');
    if (colon == std::string::npos || blank == std::string::npos || blank < colon) continue;
    list.hosts.push_back({line.substr(blank + 1), line.substr(0, colon)});
    list.slots = static_cast<int>(ParseInteger(line.substr(colon + 1, blank - colon - 1)).value_or(1));
  }
  if (const auto at = kube::ParseTime(config_map.metadata.Annotation(kPublishedAnnotation))) list.published = *at;
  return list;
}

}  // namespace grus
