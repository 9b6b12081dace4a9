// SPDX-License-Identifier: Apache-2.0
// The pages of docs/reference: every field of every kind, from the schemas of the CustomResourceDefinitions. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/model/crd.h"

namespace api {

// Markdown by file name: KIND.md for each kind, and README.md, which lists them. Kinds of the same name, as PodGroup in
// two groups, share a page. REQUIRES: then their fields are the same.
std::map<std::string, std::string> ReferencePages(const std::vector<kube::CrdInfo>& crds);

}  // namespace api
