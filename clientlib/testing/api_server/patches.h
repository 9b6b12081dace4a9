// SPDX-License-Identifier: Apache-2.0
// The patches of the API server that change a document in place: JSON patch and strategic merge patch. (Merge
// patches are kube::MergePatch.) Pure functions on values.
#pragma once

#include "clientlib/base/result.h"
#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

// RFC 6902. Errors: kInvalid with the server's wording (a failed `test`, a path that does not exist, an unknown
// operation); kInvalidArgument if `patch` is not a list of objects. After an error `document` is unspecified.
Status ApplyJsonPatch(Json& document, const Json& patch);

// Lists of type map (by `schema`) merge by their keys; "$patch": delete | replace, "$deleteFromPrimitiveList/NAME",
// "$retainKeys" and "$setElementOrder/NAME" are understood. Errors: kInvalidArgument, and kInternal where the server
// answers 500: an item without its key, an unknown "$patch".
Status ApplyStrategicMergePatch(const StructuralSchema* schema, Json& document, const Json& patch);

}  // namespace kube::testing
