# SPDX-License-Identifier: Apache-2.0
# What every target of grus shares: warnings, sanitizers, third-party packages, and three helpers.

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS program_options)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_path(RAPIDJSON_INCLUDE_DIR rapidjson/document.h REQUIRED)

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the tree: another checkout of the same sources, as CI has one, finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
endif()

add_library(grus_options INTERFACE)
target_compile_features(grus_options INTERFACE cxx_std_20)
target_compile_options(grus_options INTERFACE
  $<BUILD_INTERFACE:-Wall> $<BUILD_INTERFACE:-Wextra> $<BUILD_INTERFACE:-Wpedantic> $<BUILD_INTERFACE:-Wshadow>
  $<BUILD_INTERFACE:-Wconversion> $<BUILD_INTERFACE:-Werror>)
target_include_directories(grus_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
if(GRUS_SANITIZE)
  target_compile_options(grus_options INTERFACE
    -fsanitize=${GRUS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # False ones in std::variant once it is instrumented.
  target_link_options(grus_options INTERFACE -fsanitize=${GRUS_SANITIZE})
endif()
if(GRUS_FUZZ)
  # All code tells the fuzzer where it has been; only the targets have its main().
  target_compile_options(grus_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(grus_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# RapidJSON's headers are C++98; included as system headers they are clean under our warnings.
add_library(grus_rapidjson INTERFACE)
target_include_directories(grus_rapidjson SYSTEM INTERFACE $<BUILD_INTERFACE:${RAPIDJSON_INCLUDE_DIR}>)
if(GRUS_FUZZ)
  target_compile_options(grus_rapidjson INTERFACE -fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/tests/fuzz/ignore.txt)
endif()

# yaml-cpp 0.7 exports a plain target without include directories.
add_library(grus_yaml INTERFACE)
target_link_libraries(grus_yaml INTERFACE yaml-cpp)
target_include_directories(grus_yaml SYSTEM INTERFACE $<BUILD_INTERFACE:${YAML_CPP_INCLUDE_DIR}>)

# grus_library(NAME DEP...): all .cc files of the current folder, depending on DEP publicly.
function(grus_library name)
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC grus_options ${ARGN})
endfunction()

# grus_test(NAME FOLDER LIB...): one test binary of all *_test.cc files of FOLDER.
function(grus_test name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE grus_options ${ARGN} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
