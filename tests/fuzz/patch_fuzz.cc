// SPDX-License-Identifier: Apache-2.0
// MergePatch(), MergePatchBetween(), JsonPatch and IsCovered() on two JSON values, one a line. Rules: a merge
// patch applied twice is applied once; the patch between two objects turns one into the other; each value
// covers itself; a JSON pointer names its parts.
#include <algorithm>

#include "clientlib/client/patch.h"
#include "tests/fuzz/check.h"

namespace {

using kube::Json;
using kube::Result;

// A merge patch cannot set a member to null.
bool HasNullMember(const Json& value) {
  const Json::Object* const members = value.AsObject();
  return members && std::any_of(members->begin(), members->end(), [](const Json::Member& member) {
           return member.second.is_null() || HasNullMember(member.second);
         });
}

std::string Unescaped(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '~') text += part[++i] == '1' ? '/' : '~';
    else text += part[i];
  }
  return text;
}

void CheckPointer(std::string_view first, std::string_view second) {
  const Json operations = kube::JsonPatch().Remove({first, second}).operations();
  std::string_view path = *operations.AsArray()->front().Find("path")->AsString();
  fuzz::Require(fuzz::Cut(path, '/').empty(), "a pointer starts with a slash");
  fuzz::Require(Unescaped(fuzz::Cut(path, '/')) == first, "a pointer names its first part");
  fuzz::Require(Unescaped(path) == second, "a pointer names its second part");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::Text(data, size);
  const std::string_view first = fuzz::Cut(rest, '\n');
  CheckPointer(first, rest);
  const Result<Json> from = kube::ParseJson(first), to = kube::ParseJson(rest);
  if (!from || !to) return 0;

  fuzz::Require(kube::IsCovered(*from, *from) && kube::IsCovered(*to, *to), "a value covers itself");
  Json once = *from;
  kube::MergePatch(once, *to);
  Json twice = once;
  kube::MergePatch(twice, *to);
  fuzz::Require(once == twice, "a merge patch applied twice is applied once");

  if (!from->is_object() || !to->is_object()) return 0;
  Json turned = *from;
  kube::MergePatch(turned, kube::MergePatchBetween(*from, *to));
  fuzz::Require(HasNullMember(*to) || turned == *to, "the patch between two objects turns one into the other");
  static_cast<void>(kube::IsCovered(*from, *to));
  return 0;
}
