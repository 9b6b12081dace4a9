// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/alnair_news.h"

#include <string_view>

#include "clientlib/model/json_writer.h"
#include "crds/types/alnair_names.h"

namespace grus {
namespace {

bool IsForAlnair(std::string_view annotation) {
  return annotation.starts_with(api::kAlnairPodPrefix) || annotation.starts_with(api::kAlnairOwnerPrefix) ||
         annotation == api::kAlnairOfAnnotation;
}

kube::ObjectMeta WithoutAlnair(const kube::ObjectMeta& metadata) {
  kube::ObjectMeta rest = metadata;
  rest.resource_version.clear();
  rest.annotations.clear();
  for (const auto& [name, value] : metadata.annotations) {
    if (!IsForAlnair(name.view())) rest.annotations.emplace(name.view(), value.view());
  }
  return rest;
}

kube::Json BodyOf(const kube::Kind& kind, const kube::Object& object) {
  return kube::ToJson(kind.fields, kind.body(const_cast<kube::Object&>(object)));  // It is only read.
}

}  // namespace

bool IsOnlyForAlnair(const kube::Kind& kind, const kube::Change& change) {
  if (!change.before || !change.after) return false;
  const kube::ObjectMeta &before = change.before->metadata, &after = change.after->metadata;
  if (before.annotations == after.annotations) return false;  // So it is with nearly all.
  return WithoutAlnair(before) == WithoutAlnair(after) && BodyOf(kind, *change.before) == BodyOf(kind, *change.after);
}

}  // namespace grus
