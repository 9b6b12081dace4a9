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
# What is installed reads what strangers write. tests/charts/image_test.sh looks for each of these in the binary.
target_compile_options(grus_options INTERFACE $<$<CONFIG:Release>:-fstack-protector-strong;-fstack-clash-protection>
  $<$<CONFIG:Release>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3;-fPIE>)
target_link_options(grus_options INTERFACE $<$<CONFIG:Release>:-pie;LINKER:-z,relro,-z,now>)
if(GRUS_SANITIZE)
  target_compile_options(grus_options INTERFACE
    -fsanitize=${GRUS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # False ones in std::variant once it is instrumented.
  target_link_options(grus_options INTERFACE -fsanitize=${GRUS_SANITIZE})
  if(GRUS_SANITIZE MATCHES address)
    # The code of tests, most of all that there is, compiles in half the time without optimisation and without checks of
    # what AddressSanitizer, or a failed test, says of it anyway.
    set(checks null,alignment,vptr,object-size,nonnull-attribute,returns-nonnull-attribute)
    target_compile_options(grus_options INTERFACE "$<$<BOOL:$<TARGET_PROPERTY:GRUS_IS_TEST>>:-O0;-fno-sanitize=${checks}>")
  endif()
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

# grus_test(NAME FOLDER [SHARDS N] [LABEL LABEL] LIB...): one test binary of all *_test.cc files of FOLDER, which leaves
# its results in test-results. One that takes minutes is run as N tests, each a part of it.
function(grus_test name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SHARDS;LABEL" "")
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE grus_options ${arg_UNPARSED_ARGUMENTS} GTest::gmock GTest::gtest_main)
  set(tests ${name})
  set(cost 0)  # What it took the last time.
  set(limit 300)
  if(arg_SHARDS)
    list(TRANSFORM tests APPEND ".1")
    foreach(part RANGE 2 ${arg_SHARDS})
      list(APPEND tests ${name}.${part})
    endforeach()
    set(cost 1000)  # These begin first.
    set(limit 900)
  else()  # One that takes minutes must not take more.
    set_target_properties(${name} PROPERTIES GRUS_IS_TEST ON)
  endif()
  list(LENGTH tests total)
  set(index 0)
  foreach(test ${tests})
    add_test(NAME ${test} COMMAND ${name})
    set(results ${CMAKE_BINARY_DIR}/test-results/${test}.xml)
    set_tests_properties(${test} PROPERTIES TIMEOUT ${limit} COST ${cost} LABELS "${arg_LABEL}"
      ENVIRONMENT "GTEST_OUTPUT=xml:${results};GTEST_TOTAL_SHARDS=${total};GTEST_SHARD_INDEX=${index}")
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()
