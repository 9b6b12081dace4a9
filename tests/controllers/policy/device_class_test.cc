// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/device_class.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

kube::DeviceClassSpec ClassWith(std::initializer_list<const char*> expressions) {
  kube::DeviceClassSpec spec;
  for (const char* expression : expressions) spec.selectors.emplace_back().cel.emplace().expression = expression;
  return spec;
}

kube::Device DeviceWith(const char* name, kube::DeviceAttribute value) {
  kube::Device device;
  device.attributes.emplace_back(name, std::move(value));
  return device;
}

TEST(DeviceClass, WhatTheClassesOfDriversSayIsUnderstood) {
  const kube::Device gpu = DeviceWith("type", {.string = "gpu"}), mig = DeviceWith("type", {.string = "mig"});
  for (const char* text : {
           "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
           R"(device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu")",
           " device.driver=='gpu.nvidia.com'\n&& device . attributes [ 'gpu.nvidia.com' ] . type == 'gpu' ",
       }) {
    SCOPED_TRACE(text);
    const auto filter = DeviceFilter::Read(ClassWith({text}));
    ASSERT_TRUE(filter);
    EXPECT_TRUE(filter->Selects("gpu.nvidia.com", gpu));
    EXPECT_FALSE(filter->Selects("gpu.nvidia.com", mig));
    EXPECT_FALSE(filter->Selects("gpu.example.com", gpu));
    EXPECT_FALSE(filter->Selects("gpu.nvidia.com", {}));
  }
}

TEST(DeviceClass, AllSelectorsHold) {
  const auto filter = DeviceFilter::Read(ClassWith({"device.driver == 'a'", "device.attributes['a'].ecc == true"}));
  ASSERT_TRUE(filter);
  EXPECT_TRUE(filter->Selects("a", DeviceWith("ecc", {.boolean = true})));
  EXPECT_FALSE(filter->Selects("a", DeviceWith("ecc", {.boolean = false})));
  const auto all = DeviceFilter::Read({});
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->Selects("a", {}));
}

TEST(DeviceClass, AttributesHaveTypesAndDomains) {
  const auto first = DeviceFilter::Read(ClassWith({"device.attributes['a'].id == 0"}));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->Selects("a", DeviceWith("id", {.integer = 0})));
  EXPECT_TRUE(first->Selects("b", DeviceWith("a/id", {.integer = 0})));
  EXPECT_FALSE(first->Selects("b", DeviceWith("id", {.integer = 0})));
  EXPECT_FALSE(first->Selects("a", DeviceWith("id", {.integer = 1})));
  EXPECT_FALSE(first->Selects("a", DeviceWith("id", {.string = "0"})));
}

TEST(DeviceClass, AnythingElseIsNotUnderstood) {
  for (const char* text : {
           "",
           "true",
           "device.driver",
           "device.driver == ",
           "device.driver == 'a' ||  device.driver == 'b'",
           "device.driver == 'a' && !device.attributes['a'].x",
           "device.driver != 'a'",
           "device.driver == 'a' + 'b'",
           R"(device.driver == 'a\'b')",
           "device.driver == 'a",
           "device.driver.startsWith('a')",
           "device.attributes['a'].type in ['x']",
           "device.attributes['a'].memory == 1.5",
           "device.attributes['a'].memory == 1u",
           "device.attributes['a'].version == semver('1.0.0')",
           "device.attributes['a'] == 'a'",
           "device.capacity['a'].memory == quantity('1Gi')",
           "(device.driver == 'a')",
           "device.driver == 'a' // && more",
       }) {
    EXPECT_FALSE(DeviceFilter::Read(ClassWith({text}))) << text;
  }
  kube::DeviceClassSpec other;
  other.selectors.resize(1);
  EXPECT_FALSE(DeviceFilter::Read(other));
}

TEST(DeviceClass, OnlyWholeDevicesOfOneNodeAreCounted) {
  kube::ResourceSliceSpec slice;
  slice.node_name = "node-1";
  kube::Device device;
  EXPECT_TRUE(IsCountable(slice, device));
  device.allow_multiple_allocations = true;
  EXPECT_FALSE(IsCountable(slice, device));
  device = {};
  device.consumes_counters.resize(1);
  EXPECT_FALSE(IsCountable(slice, device));
  slice.node_name = "";
  EXPECT_FALSE(IsCountable(slice, {}));
}

TEST(DeviceClass, TaintsTakeADeviceOut) {
  kube::Device device;
  device.taints.push_back({"None"});
  EXPECT_TRUE(IsUsable(device));
  for (const char* effect : {"NoSchedule", "NoExecute"}) {
    device.taints[0].effect = effect;
    EXPECT_FALSE(IsUsable(device)) << effect;
  }
}

TEST(DeviceClass, APlainRequestAsksForJustSoMany) {
  kube::ExactDeviceRequest request{.device_class_name = "gpu"};
  EXPECT_TRUE(IsPlain(request));
  request.allocation_mode = "ExactCount";
  EXPECT_TRUE(IsPlain(request));
  const auto is_plain_with = [&](auto change) {
    kube::ExactDeviceRequest other = request;
    change(other);
    return IsPlain(other);
  };
  EXPECT_FALSE(is_plain_with([](auto& r) { r.allocation_mode = "All"; }));
  EXPECT_FALSE(is_plain_with([](auto& r) { r.admin_access = true; }));
  EXPECT_FALSE(is_plain_with([](auto& r) { r.selectors.resize(1); }));
  EXPECT_FALSE(is_plain_with([](auto& r) { r.tolerations.resize(1); }));
  EXPECT_FALSE(is_plain_with([](auto& r) { r.capacity.emplace(); }));
}

TEST(DeviceClass, AnAllocatedDeviceIsOfTheClassOfItsRequest) {
  kube::ResourceClaimSpec claim;
  claim.devices.requests.resize(2);
  claim.devices.requests[0].name = "one";
  claim.devices.requests[0].exactly.emplace().device_class_name = "gpu";
  claim.devices.requests[1].name = "any";
  claim.devices.requests[1].first_available = {{"large", "big"}, {"small", "little"}};
  EXPECT_EQ(ClassOf({.request = "one"}, claim), "gpu");
  EXPECT_EQ(ClassOf({.request = "any/small"}, claim), "little");
  EXPECT_EQ(ClassOf({.request = "any"}, claim), "");
  EXPECT_EQ(ClassOf({.request = "other"}, claim), "");
}

}  // namespace
}  // namespace grus
