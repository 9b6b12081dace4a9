// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions from the C++ types. Values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "clientlib/model/field.h"
#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"

namespace kube {

// A column of `kubectl get`.
struct PrinterColumn {
  std::string_view name;
  std::string_view type;       // integer | number | string | boolean | date
  std::string_view json_path;  // ".status.phase"
  std::string_view description = {};
  int priority = 0;  // Above 0: only with -o wide.
  std::string_view format = {};
};

// Makes `kubectl scale` and autoscalers work.
struct ScalePaths {
  std::string_view spec_path;           // ".spec.workersSpec.targetReplicas"
  std::string_view status_path;         // ".status.availableReplicas"
  std::string_view selector_path = {};  // ".status.selector"
};

// One served version beside the first one, with its own C++ type.
struct CrdVersion {
  const Kind* kind = nullptr;  // Same group and plural, another version.
  bool is_served = true;
  bool is_deprecated = false;
  std::string_view deprecation_warning = {};
  std::string_view doc = {};
};

struct CrdInfo {
  const Kind* kind = nullptr;      // Its fields, usually spec and status, are the schema.
  std::string_view singular = {};  // Empty: the kind in lower case.
  std::vector<std::string_view> short_names = {};
  std::vector<std::string_view> categories = {};
  std::string_view doc = {};

  bool has_status = true;  // The status subresource; the status is then written through it only.
  std::optional<ScalePaths> scale = {};
  std::vector<PrinterColumn> printer_columns = {};
  std::vector<std::string_view> selectable_fields = {};  // ".spec.queueName": for field selectors.
  std::vector<CelRule> cel = {};                         // Over the whole object; may look at self.metadata.name.

  // Annotation api-approved.kubernetes.io, which the API server demands of groups that end in ".k8s.io".
  std::string_view api_approval = {};

  bool is_served = true;
  bool is_deprecated = false;
  std::string_view deprecation_warning = {};
  // Older or newer versions. `kind` is the one that is stored; all share columns, scale and status, and
  // differ in fields only, as there is no conversion.
  std::vector<CrdVersion> more_versions = {};
};

// The whole apiextensions.k8s.io/v1 object.
Json MakeCrd(const CrdInfo& info);

}  // namespace kube
