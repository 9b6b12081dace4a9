# SPDX-License-Identifier: Apache-2.0
# A script for each build: writes version.cc of OUT from that of SOURCE, and leaves it alone if it is right.
# VERSION, SOURCE, OUT; COMMIT: the commit, or empty to ask git.

if(NOT COMMIT)
  # A first line that is not empty: SOURCE is a folder in the tree of somebody else, whose commit says nothing of ours.
  execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix HEAD OUTPUT_VARIABLE answer ERROR_QUIET)
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} status --porcelain OUTPUT_VARIABLE changes ERROR_QUIET)
  if(answer MATCHES "^\n([0-9a-f]+)\n$")
    set(COMMIT ${CMAKE_MATCH_1})
    if(changes)
      string(APPEND COMMIT -dirty)
    endif()
  else()
    set(COMMIT unknown)
  endif()
endif()

if(COMMIT MATCHES "^([0-9a-f]+)(-dirty)?$")
  set(dirty ${CMAKE_MATCH_2})
  string(SUBSTRING ${CMAKE_MATCH_1} 0 7 COMMIT)
  string(APPEND COMMIT "${dirty}")
elseif(NOT COMMIT STREQUAL unknown)
  message(FATAL_ERROR "GRUS_COMMIT \"${COMMIT}\": expected the hash of a commit, with -dirty behind it if files have changed")
endif()

configure_file(${SOURCE}/controllers/version/version.cc.in ${OUT}/version.cc @ONLY)
