// SPDX-License-Identifier: Apache-2.0
// What the server serves under one plural name: its names and its rules. A value, immutable once a table uses it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

class Storage;

// What a kind adds to the rules of all kinds; each may be null.
struct KindRules {
  void (*set_defaults)(Json& object) = nullptr;               // When the server decodes it.
  void (*prepare)(Json& object, Storage& storage) = nullptr;  // What the server chooses for a new object.
  void (*carry)(const Json& before, Json& object) = nullptr;  // What an update silently cannot change.
  std::vector<FieldError> (*validate)(const Json& object, const Json* before) = nullptr;  // `before` null: it is new.
  std::string (*forbid)(const Json& object, Storage& storage) = nullptr;  // Why a valid new object is refused.
  // Admission: changes a new object before `prepare`, or returns why it is refused.
  std::string (*admit)(Json& object, Storage& storage) = nullptr;
};

struct ResourceInfo {
  std::string group{}, version{}, kind{}, plural{}, singular{};
  std::vector<std::string> short_names{}, categories{};
  bool is_namespaced = true;
  bool is_custom = false;
  bool has_status = false;  // As a subresource.
  bool has_scale = false;
  bool has_generation = false;
  bool is_create_allowed_on_update = false;
  bool is_unconditional_update_allowed = true;
  bool is_returned_when_deleted = false;
  bool is_orphaning_by_default = false;
  bool is_terminating = false;  // A CRD that waits for the end of its objects.
  std::vector<std::string> replicas_path{}, status_replicas_path{}, selector_path{};  // For scale.
  std::vector<std::string> selectable_fields{};      // Besides metadata.name and -namespace.
  std::shared_ptr<const StructuralSchema> schema{};  // Null: none.
  const KindRules* rules = nullptr;

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  // "pods", "statefulsets.apps"
  std::string Id() const { return group.empty() ? plural : plural + "." + group; }
  bool Is(std::string_view some_group, std::string_view some_plural) const {
    return group == some_group && plural == some_plural;
  }
};

// All that is served without a CRD. Made once for the process.
const std::vector<std::shared_ptr<const ResourceInfo>>& BuiltinResources();

}  // namespace kube::testing
