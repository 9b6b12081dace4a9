// SPDX-License-Identifier: Apache-2.0
// Turns a metav1.Status, the API server's error answer, into an Error. Pure functions on values.
#pragma once

#include <string_view>

#include "clientlib/http/transport.h"

namespace kube {

// The Error for an answer with a status outside 2xx. The message is the server's own; a body that is not a Status (a
// proxy's HTML page) is kept, cut to 300 bytes. The message of a 429 also names the UID of the flow schema. `now`: for
// a Retry-After that is a date.
Error ErrorFromResponse(const HttpResponse& response, WallTime now);

// The Error for an ERROR event of a watch. `status_json` is the event's object.
Error ErrorFromStatus(std::string_view status_json);

}  // namespace kube
