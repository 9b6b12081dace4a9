// SPDX-License-Identifier: Apache-2.0
// What the API server's refusals of pods and other children mean. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/error.h"

namespace grus {

// Denied by the authorizer, not by an admission check of what was written.
bool IsNotPermitted(const kube::Error& error);
// The namespace is being deleted, and takes everything in it with it.
bool IsOfEndingNamespace(const kube::Error& error);
// Whether the API server judged the object itself: it refuses the same one again until something else changes.
bool IsFinal(const kube::Error& refusal);
// An admission check (a quota, Pod Security, a webhook) refuses the object, which is valid.
bool IsByAdmission(const kube::Error& error);

// The API server's words after 'pods "x" is forbidden: ', if it was a quota that refused; empty: it was not.
std::string QuotaRefusalOf(const kube::Error& error);
// Whether these words say that the pod does not state what the quota counts, rather than that the quota is used up.
bool IsForWantOfStatement(std::string_view quota_refusal);

}  // namespace grus
