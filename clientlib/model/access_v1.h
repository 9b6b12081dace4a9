// SPDX-License-Identifier: Apache-2.0
// The API server's answers on who sends a token (TokenReview) and what they or we may do (SubjectAccessReview,
// SelfSubjectAccessReview). Values; the questions are written as Json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/model/kind.h"

namespace kube {

struct TokenUser {
  std::string username, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  static std::span<const FieldInfo> Fields();
};

struct TokenReviewStatus {
  bool authenticated = false;
  TokenUser user;
  static std::span<const FieldInfo> Fields();
};

struct TokenReview : Object {
  TokenReviewStatus status;
  static const Kind& ResourceKind();
};

struct SubjectAccessReviewStatus {
  bool allowed = false;
  static std::span<const FieldInfo> Fields();
};

struct SubjectAccessReview : Object {
  SubjectAccessReviewStatus status;
  static const Kind& ResourceKind();
};

struct SelfSubjectAccessReview : Object {
  SubjectAccessReviewStatus status;
  static const Kind& ResourceKind();
};

}  // namespace kube
