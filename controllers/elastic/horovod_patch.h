// SPDX-License-Identifier: Apache-2.0
// A remedy for two faults of Horovod 0.28, as a Python file that is put on PYTHONPATH in workers and launcher.
#pragma once

#include <string_view>

namespace grus {

// The text of sitecustomize.py. Python imports it at each start; it does nothing until Horovod is imported.
std::string_view HorovodPatch();

}  // namespace grus
