// SPDX-License-Identifier: Apache-2.0
// OverlayTemplate() and MergeNamed() on a user's pod template of any shape. Rules: laid over twice is laid
// over once; where the template has room for it, our container is there with our image; the user's other
// containers stay.
#include <algorithm>

#include "controllers/elastic/pod_templates.h"
#include "tests/fuzz/check.h"

namespace {

using kube::Json;

grus::OurContainer Ours() {
  grus::OurContainer ours;
  ours.name = "worker";
  ours.image = "grus/worker:1";
  ours.command = {"/bin/sh", "-c", "true"};
  ours.volume_mounts = Json::MakeArray({Json::MakeObject({{"name", "ssh"}, {"mountPath", "/etc/ssh"}})});
  ours.volumes = Json::MakeArray({Json::MakeObject({{"name", "ssh"}})});
  ours.devices = {"nvidia.com/gpu", 1};
  return ours;
}

bool IsOurs(const Json& container) { return container.Find("name") && *container.Find("name") == Json("worker"); }

void CheckContainers(const Json::Array& before, const Json::Array& after) {
  const auto ours = std::find_if(after.begin(), after.end(), IsOurs);
  fuzz::Require(ours != after.end(), "our container is there");
  fuzz::Require(*ours->Find("image") == Json("grus/worker:1"), "our container has our image");
  fuzz::Require(ours->Find("command")->AsArray()->size() == 3, "our container has our command");
  const bool has_same = std::any_of(before.begin(), before.end(), IsOurs);
  fuzz::Require(after.size() == before.size() + (has_same ? 0 : 1), "no container of the user's is lost");
  for (const Json& container : before) {
    fuzz::Require(IsOurs(container) || std::count(after.begin(), after.end(), container) > 0,
                  "the user's other containers stay as they are");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kube::Result<Json> user = kube::ParseJson(fuzz::Text(data, size));
  if (!user) return 0;
  const Json labels = Json::MakeObject({{"app.kubernetes.io/managed-by", "grus"}});
  const Json pod = grus::OverlayTemplate(*user, Ours(), labels, "high");
  fuzz::Require(grus::OverlayTemplate(pod, Ours(), labels, "high") == pod, "laid over twice is laid over once");
  fuzz::Require(kube::IsCovered(pod, pod), "a template covers itself");

  const Json* const before = user->At({"spec", "containers"});
  const Json* const after = pod.At({"spec", "containers"});
  if (before && before->AsArray()) CheckContainers(*before->AsArray(), *after->AsArray());
  if (user->is_object() && user->At({"spec"}) == nullptr) CheckContainers({}, *after->AsArray());
  return 0;
}
