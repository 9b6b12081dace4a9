// SPDX-License-Identifier: Apache-2.0
// The CRD of the contract tests: one field for each rule of structural schemas that our users meet.
#pragma once

#include <string_view>

namespace kube::contract {

// widgets.contract.grus.dev, as JSON.
std::string_view WidgetCrd();

}  // namespace kube::contract
