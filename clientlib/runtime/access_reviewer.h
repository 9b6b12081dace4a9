// SPDX-License-Identifier: Apache-2.0
// Who may do what, as the API server says: the sender of a bearer token (TokenReview, SubjectAccessReview), or we
// ourselves (SelfSubjectAccessReview).
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"
#include "clientlib/client/client.h"

namespace kube {

// Remembers its answers: an allowed token for a minute, a refused one for ten seconds. While the API server cannot be
// asked, who was allowed within the last ten minutes still is: metrics are wanted most when something is broken.
// Strangers make it ask at most twice a second, so that they can neither burden the API server nor keep those that were
// allowed from being asked about again. Not thread-safe.
class AccessReviewer {
 public:
  // Both must outlive it. Needs the rights to create tokenreviews and subjectaccessreviews.
  AccessReviewer(Client& client, const Clock& clock) : client_(client), clock_(clock) {}

  // `authorization` is the header's value. Blocks for as long as the client may. Errors, none with the token in it:
  // kUnauthorized, no bearer token or not a valid one; kForbidden, names the user and the right that is missing;
  // kTooManyRequests; those of the client.
  Status MayGet(std::string_view authorization, const std::string& path);

 private:
  struct Memory {
    Status answer;
    TimePoint asked_at;
  };

  Status Ask(std::string_view token, const std::string& path);
  bool TakeTurn(TimePoint now);
  void MakeRoom(TimePoint now);

  Client& client_;
  const Clock& clock_;
  std::unordered_map<std::string, Memory> known_;  // By a hash of token and path.
  double turns_ = 0;                               // For strangers.
  TimePoint turns_at_{};
};

struct ResourceAccess {
  std::string_view verb, group, resource, subresource, ns, name;  // Empty `ns`, `name`: all.
};

// Whether the client's account may. Everybody may ask. Blocks; thread-safe. Errors: those of the client.
Result<bool> MayI(Client& client, const ResourceAccess& access, std::stop_token stop = {});

}  // namespace kube
