// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/access_v1.h"

namespace kube {

std::span<const FieldInfo> TokenUser::Fields() {
  using T = TokenUser;
  static constexpr FieldInfo kFields[] = {Field<&T::username>("username"), Field<&T::uid>("uid"),
                                          Field<&T::groups>("groups"), Field<&T::extra>("extra")};
  return kFields;
}

std::span<const FieldInfo> TokenReviewStatus::Fields() {
  using T = TokenReviewStatus;
  static constexpr FieldInfo kFields[] = {Field<&T::authenticated>("authenticated"), Field<&T::user>("user")};
  return kFields;
}

const Kind& TokenReview::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&TokenReview::status>("status")};
  static const Kind kKind = MakeKind<TokenReview>({.group = "authentication.k8s.io",
                                                   .version = "v1",
                                                   .kind = "TokenReview",
                                                   .plural = "tokenreviews",
                                                   .is_namespaced = false,
                                                   .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> SubjectAccessReviewStatus::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&SubjectAccessReviewStatus::allowed>("allowed")};
  return kFields;
}

const Kind& SubjectAccessReview::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&SubjectAccessReview::status>("status")};
  static const Kind kKind = MakeKind<SubjectAccessReview>({.group = "authorization.k8s.io",
                                                           .version = "v1",
                                                           .kind = "SubjectAccessReview",
                                                           .plural = "subjectaccessreviews",
                                                           .is_namespaced = false,
                                                           .fields = kFields});
  return kKind;
}

const Kind& SelfSubjectAccessReview::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&SelfSubjectAccessReview::status>("status")};
  static const Kind kKind = MakeKind<SelfSubjectAccessReview>({.group = "authorization.k8s.io",
                                                               .version = "v1",
                                                               .kind = "SelfSubjectAccessReview",
                                                               .plural = "selfsubjectaccessreviews",
                                                               .is_namespaced = false,
                                                               .fields = kFields});
  return kKind;
}

}  // namespace kube
