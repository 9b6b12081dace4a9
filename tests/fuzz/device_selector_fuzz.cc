// SPDX-License-Identifier: Apache-2.0
// DeviceFilter::Read() on a selector of a DeviceClass. Rules: what is understood is understood twice over, and then
// selects the same.
#include "controllers/policy/device_class.h"
#include "tests/fuzz/check.h"

namespace {

std::optional<grus::DeviceFilter> Read(std::string_view text, int times) {
  kube::DeviceClassSpec spec;
  spec.selectors.resize(1);
  std::string expression(text);
  for (int i = 1; i < times; ++i) expression += " && " + std::string(text);
  spec.selectors[0].cel.emplace().expression = expression;
  return grus::DeviceFilter::Read(spec);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  const auto once = Read(text, 1), twice = Read(text, 2);
  if (!once) return 0;
  fuzz::Require(twice.has_value(), "what is understood is understood twice over");
  kube::Device device;
  device.attributes.emplace_back("type", kube::DeviceAttribute{.string = "gpu"});
  device.attributes.emplace_back("d/id", kube::DeviceAttribute{.integer = 0});
  for (const char* driver : {"d", "gpu.nvidia.com"}) {
    fuzz::Require(once->Selects(driver, device) == twice->Selects(driver, device), "and selects the same");
  }
  return 0;
}
