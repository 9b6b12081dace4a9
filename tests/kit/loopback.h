// SPDX-License-Identifier: Apache-2.0
// Sockets of 127.0.0.1, for servers of tests. All throw when the system refuses.
#pragma once

namespace kube::testing {

// A TCP socket bound to `port`; to any free one, which it stores, if that is 0. Two that share a port must both say so.
int BindToLoopback(int& port, bool shares_port = false);
int ListenOnLoopback(int& port);
// Both without Nagle's delay. -1 if nobody listens there, or if `listener` was shut down.
int ConnectToLoopback(int port);
int AcceptFrom(int listener);

}  // namespace kube::testing
