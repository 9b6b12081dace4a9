// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/coordination_v1.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/events_v1.h"
#include "clientlib/model/resource_claims.h"
#include "clientlib/model/resource_quota.h"
#include "clientlib/model/scheduling_v1.h"
#include "tests/kit/tree_file.h"

namespace kube {
namespace {

// core_types.json has one object of each, with all fields that the C++ type holds and no others.
TEST(CoreTypes, EveryFieldSurvivesReadingAndWriting) {
  const Kind* const kinds[] = {&KindOf<Pod>(),
                               &KindOf<Node>(),
                               &KindOf<Service>(),
                               &KindOf<ConfigMap>(),
                               &KindOf<Secret>(),
                               &KindOf<Namespace>(),
                               &KindOf<PersistentVolumeClaim>(),
                               &KindOf<PersistentVolume>(),
                               &KindOf<StorageClass>(),
                               &KindOf<DeviceClass>(),
                               &KindOf<ResourceClaim>(),
                               &KindOf<ResourceClaimTemplate>(),
                               &KindOf<ResourceSlice>(),
                               &KindOf<ResourceQuota>(),
                               &KindOf<PriorityClass>(),
                               &KindOf<StatefulSet>(),
                               &KindOf<Job>(),
                               &KindOf<Lease>(),
                               &KindOf<Event>()};
  const Json objects = *ParseJson(kit::ReadTreeFile("tests/clientlib/model/core_types.json"));
  ASSERT_EQ(objects.AsArray()->size(), std::size(kinds));
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    const Json& before = objects.AsArray()->at(i);
    SCOPED_TRACE(kinds[i]->kind);
    const Result<std::shared_ptr<Object>> object = DecodeObject(*kinds[i], ToText(before));
    ASSERT_TRUE(object) << object.error().message();
    const Json after = *ParseJson(EncodeObject(*kinds[i], **object));
    EXPECT_TRUE(before == after) << "before " << ToText(before) << "\nafter  " << ToText(after);
  }
}

}  // namespace
}  // namespace kube
