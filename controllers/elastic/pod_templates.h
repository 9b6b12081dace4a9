// SPDX-License-Identifier: Apache-2.0
// Laying our fields over a user's pod template. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/model/json.h"

namespace grus {

struct OurContainer {
  std::string name;  // A container of this name in the user's template is merged with ours.
  std::string image;
  std::vector<std::string> command;
  kube::Json volume_mounts, volumes;  // Arrays; added, and replacing the user's of the same name.
  kube::Json default_mounts;          // An array; added where the user mounts nothing at that path.
  // Fields of the container, each a path and a value, where the user says nothing.
  std::vector<std::pair<std::vector<std::string>, kube::Json>> defaults;
  std::string device;  // An extended resource of which it asks for so many.
  int devices = 0;
  bool is_device_stated = false;  // By the user: amounts that are there stay.
  int port = 0;  // It listens there. On the node's network such pods must not meet: claimed as a port of the node then.
};

// `user_template` may be null, or anything at all: what is no object is passed on for the API server to refuse.
kube::Json OverlayTemplate(const kube::Json& user_template, const OurContainer& ours, const kube::Json& labels,
                           const std::string& priority_class_name);

// Adds `items` to the array at `key` of `object`, replacing those with the same `name_key`. What is neither missing
// nor an array stays as it is.
void MergeNamed(kube::Json& object, std::string_view key, const kube::Json& items, std::string_view name_key);

}  // namespace grus
