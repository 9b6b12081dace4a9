// SPDX-License-Identifier: Apache-2.0
// StringMap and CompactString: "KEY=VALUE" sets, "KEY" erases, one a line. Rule: it stays equal to a
// std::map.
#include "clientlib/model/string_map.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::Text(data, size);
  kube::StringMap map;
  std::map<std::string, std::string> model;
  while (!rest.empty()) {
    std::string_view value = fuzz::Cut(rest, '\n');
    const bool has_value = value.find('=') != std::string_view::npos;
    const std::string_view key = fuzz::Cut(value, '=');
    if (has_value) {
      map.insert_or_assign(key, value);
      model.insert_or_assign(std::string(key), std::string(value));
    } else {
      fuzz::Require(map.erase(key) == model.erase(std::string(key)), "both erase the same");
    }
    fuzz::Require(map.contains(key) == has_value, "a key is there once it is set");
    fuzz::Require(map.Get(key) == (has_value ? value : std::string_view()), "a value is what was set");
  }
  const std::map<std::string, std::string> same = map;
  fuzz::Require(same == model, "the map is equal to a std::map");
  fuzz::Require(kube::StringMap(model) == map, "a std::map is equal to the map");
  return 0;
}
