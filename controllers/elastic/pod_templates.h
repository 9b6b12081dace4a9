// SPDX-License-Identifier: Apache-2.0
// Laying our fields over a user's pod template. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/model/json.h"
#include "controllers/policy/worker_devices.h"

namespace grus {

struct OurContainer {
  std::string name;  // A container of this name in the user's template is merged with ours.
  std::string image;
  std::vector<std::string> command;
  kube::Json volume_mounts, volumes;  // Arrays. They replace the user's of the same path or name.
  kube::Json::Array default_mounts;   // Added where the user mounts nothing at that path.
  // Fields of the container, each a path and a value, where the user says nothing.
  std::vector<std::pair<std::vector<std::string>, kube::Json>> defaults;
  WorkerDevices devices;  // If the user states them, the amounts in the template stay.
  // Where it listens. On the host network, the pod takes this port of the node, so that no node gets two.
  int port = 0;
};

// `user_template` may be null, or any JSON: what is not an object is passed on for the API server to refuse.
kube::Json OverlayTemplate(const kube::Json& user_template, const OurContainer& ours, const kube::Json& labels,
                           const std::string& priority_class_name);

// Makes the scheduler like `node` best for a pod of this spec, without holding it there: a preference, and a spread
// that counts no pods in place of the scheduler's own default, which would keep the pods of one Service apart. Nothing
// if the spec says itself what it prefers or how to spread.
void PreferNode(kube::Json& spec, const std::string& node);

// Adds `items` to the array at `key` of `object`, and replaces those with the same `name_key`. What is neither missing
// nor an array stays as it is.
void MergeNamed(kube::Json& object, std::string_view key, const kube::Json& items, std::string_view name_key);

}  // namespace grus
