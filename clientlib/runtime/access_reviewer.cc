// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/access_reviewer.h"

#include <openssl/sha.h>

#include <algorithm>

#include "clientlib/base/lower_case.h"
#include "clientlib/model/access_v1.h"

namespace kube {
namespace {

constexpr std::chrono::seconds kAllowedFor(60), kRefusedFor(10), kAllowedWithoutServer(600);
constexpr double kTurnsPerSecond = 2, kMostTurns = 10;
constexpr std::size_t kMostKnown = 256;

// The scheme's name is compared as RFC 9110 wants it. Empty: none, or not a bearer's.
std::string_view BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  const bool is_bearer =
      authorization.size() > kScheme.size() && std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                                                          [](char a, char b) { return a == LowerCase(b); });
  return is_bearer ? authorization.substr(kScheme.size()) : std::string_view();
}

// Tokens do not stay in memory.
std::string HashOf(std::string_view token, const std::string& path) {
  const std::string text = std::string(token) + ' ' + path;
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  return {reinterpret_cast<const char*>(hash), sizeof hash};
}

Json Texts(const std::vector<std::string>& texts) {
  Json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return Json(std::move(out));
}

template <typename Review>
Result<std::shared_ptr<Review>> Create(Client& client, Json spec, std::stop_token stop = {}) {
  const Kind& kind = KindOf<Review>();
  Json review = Json::MakeObject({{"apiVersion", std::string(kind.group) + "/" + std::string(kind.version)},
                                  {"kind", std::string(kind.kind)},
                                  {"spec", std::move(spec)}});
  Result<Client::ObjectPtr> answer = client.Create(kind, "", review, {}, std::move(stop));
  if (!answer) return std::move(answer).error().with("create " + std::string(kind.plural));
  return std::static_pointer_cast<Review>(*std::move(answer));
}

bool IsAnswer(const Status& status) {
  return status || status.error().code() == ErrorCode::kUnauthorized || status.error().code() == ErrorCode::kForbidden;
}

}  // namespace

Status AccessReviewer::MayGet(std::string_view authorization, const std::string& path) {
  const std::string_view token = BearerToken(authorization);
  if (token.empty()) return Error(ErrorCode::kUnauthorized, "a bearer token is needed, as of a service account");
  const TimePoint now = clock_.Now();
  const std::string key = HashOf(token, path);
  const auto found = known_.find(key);
  const bool was_allowed = found != known_.end() && found->second.answer;
  if (found != known_.end() && now - found->second.asked_at < (was_allowed ? kAllowedFor : kRefusedFor)) {
    return found->second.answer;
  }
  if (!was_allowed && !TakeTurn(now)) return Error(ErrorCode::kTooManyRequests, "too many unknown tokens; try again");

  Status answer = Ask(token, path);
  if (IsAnswer(answer)) {
    MakeRoom(now);
    known_.insert_or_assign(key, Memory{answer, now});
  } else if (was_allowed && now - found->second.asked_at < kAllowedWithoutServer) {
    return {};
  }
  return answer;
}

Status AccessReviewer::Ask(std::string_view token, const std::string& path) {
  Result<std::shared_ptr<TokenReview>> who =
      Create<TokenReview>(client_, Json::MakeObject({{"token", std::string(token)}}));
  // Our own rights are not the sender's.
  if (!who) return Error(ErrorCode::kUnavailable, who.error().message());
  if (!(*who)->status.authenticated) return Error(ErrorCode::kUnauthorized, "the API server does not know the token");

  const TokenUser& user = (*who)->status.user;
  Json extra = Json::MakeObject();
  for (const auto& [name, values] : user.extra) extra[name] = Texts(values);
  Result<std::shared_ptr<SubjectAccessReview>> may = Create<SubjectAccessReview>(
      client_, Json::MakeObject({{"user", user.username},
                                 {"uid", user.uid},
                                 {"groups", Texts(user.groups)},
                                 {"extra", std::move(extra)},
                                 {"nonResourceAttributes", Json::MakeObject({{"path", path}, {"verb", "get"}})}}));
  if (!may) return Error(ErrorCode::kUnavailable, may.error().message());
  if (!(*may)->status.allowed) {
    return Error(ErrorCode::kForbidden, user.username + " may not get " + path +
                                            ": a ClusterRole with nonResourceURLs [" + path + "] is needed");
  }
  return {};
}

bool AccessReviewer::TakeTurn(TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - turns_at_).count();
  turns_ = std::min(kMostTurns, turns_ + seconds * kTurnsPerSecond);
  turns_at_ = now;
  if (turns_ < 1) return false;
  turns_ -= 1;
  return true;
}

// Refused ones go first: each stranger's token makes a new one.
void AccessReviewer::MakeRoom(TimePoint now) {
  if (known_.size() < kMostKnown) return;
  std::erase_if(known_, [&](const auto& entry) {
    return !entry.second.answer || now - entry.second.asked_at >= kAllowedWithoutServer;
  });
  if (known_.size() >= kMostKnown) known_.clear();
}

Result<bool> MayI(Client& client, const ResourceAccess& access, std::stop_token stop) {
  Json attributes = Json::MakeObject();
  const auto set = [&](const char* name, std::string_view value) {
    if (!value.empty()) attributes[name] = std::string(value);
  };
  set("verb", access.verb);
  set("group", access.group);
  set("resource", access.resource);
  set("subresource", access.subresource);
  set("namespace", access.ns);
  set("name", access.name);
  Result<std::shared_ptr<SelfSubjectAccessReview>> may = Create<SelfSubjectAccessReview>(
      client, Json::MakeObject({{"resourceAttributes", std::move(attributes)}}), std::move(stop));
  if (!may) return std::move(may).error();
  return (*may)->status.allowed;
}

}  // namespace kube
