# SPDX-License-Identifier: Apache-2.0
# find_package(grus-clientlib): gives the target grus::clientlib.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL)
find_dependency(CURL)
find_dependency(Boost)
find_dependency(spdlog)
find_dependency(yaml-cpp)
include(${CMAKE_CURRENT_LIST_DIR}/grus-clientlib-targets.cmake)
