// SPDX-License-Identifier: Apache-2.0
// What the measured programs of the C++ side share: they say in lines how far they are and wait for a line to
// go on.
#pragma once

#include <memory>
#include <string>

#include "clientlib/base/log.h"
#include "clientlib/client/connection.h"

namespace bench {

void Say(const std::string& line);
void Await();  // Ends the process when whoever started it is gone.

// Ends the process with a message if the kubeconfig is of no use.
std::unique_ptr<kube::Connection> ConnectOrExit(const std::string& kubeconfig, const kube::Clock& clock);

}  // namespace bench
