# cmake -DSOURCE_DIR=<root> -P rooms_are_checked.cmake
# Checks that CheckFloors.cmake, CheckStandardIncludes.cmake and DrawRooms.cmake find what they are
# there to find, in a copy of the tree.
cmake_minimum_required(VERSION 3.25)
set(WORK_DIR "${CMAKE_CURRENT_BINARY_DIR}/rooms_are_checked")
file(REMOVE_RECURSE "${WORK_DIR}")
file(COPY "${SOURCE_DIR}/include" "${SOURCE_DIR}/docs" "${SOURCE_DIR}/README.md"
  DESTINATION "${WORK_DIR}" FILES_MATCHING PATTERN "*pp" PATTERN "*.cuh" PATTERN "*.md")

# Runs a script on the copy. It must fail, and its messages must hold each of `expected`.
function(expect script) # <message>...
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${WORK_DIR} -DINCLUDE_DIR=${WORK_DIR}/include/roundpipe
      -P ${SOURCE_DIR}/cmake/${script}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " text "${out}")
  foreach(expected IN LISTS ARGN)
    string(FIND "${text}" "${expected}" position)
    if(status EQUAL 0 OR position EQUAL -1)
      message(SEND_ERROR "${script}: want a message with '${expected}', have:\n${out}")
    endif()
  endforeach()
endfunction()

# Headers of the lowest room, each with lines that break one rule. A script takes seconds for the
# tree, so one run judges all.
set(core "${WORK_DIR}/include/roundpipe/core")
file(WRITE "${core}/bad_room.hpp" "#include <roundpipe/plan/planner.hpp>\n")
file(WRITE "${core}/bad_name.hpp" "#include <roundpipe/core/none.hpp>\n")
file(WRITE "${core}/bad_quotes.hpp" "#include \"id.hpp\"\n")
file(WRITE "${core}/bad_library.hpp" "#include <Eigen/Dense>\n")
file(WRITE "${core}/bad_circle.hpp" "#include <roundpipe/core/bad_circle.hpp>\n")
string(REPEAT "\n" 301 lines)
file(WRITE "${core}/bad_length.hpp" "${lines}")
# Names of the standard library without their header, and a header that includes one no more.
file(WRITE "${core}/bad_vector.hpp" "std::vector<int> x;\n")
file(WRITE "${core}/bad_algorithm.hpp"
  "#include <algorithm>\nauto f() { return std::ranges::none(); }\n")
file(WRITE "${core}/bad_assert.hpp" "auto f() { assert(true); }\n")
file(WRITE "${core}/bad_compare.hpp" "auto operator<=>(A const&, A const&) = default;\n")
file(READ "${core}/bytes.hpp" text)
string(REPLACE "#include <string>\n" "" text "${text}")
file(WRITE "${core}/bytes.hpp" "${text}")
expect(CheckFloors.cmake
  "core/bad_room.hpp: '#include <roundpipe/plan/planner.hpp>': core/ may not include plan/"
  "core/bad_name.hpp includes core/none.hpp, which does not exist"
  "core/bad_quotes.hpp: want #include <...> in '#include \"id.hpp\"'"
  "core/bad_library.hpp includes <Eigen/Dense>, and its folder may not"
  "core/bad_circle.hpp includes itself"
  "core/bad_length.hpp has 301 lines: want at most 300")
expect(CheckStandardIncludes.cmake
  "core/bad_vector.hpp uses std::vector and does not include <vector>"
  "core/bad_algorithm.hpp uses std::ranges::none: add it to the table of CheckStandardIncludes.cmake"
  "core/bad_assert.hpp uses assert and does not include <cassert>"
  "core/bad_compare.hpp uses operator<=> and does not include <compare> or <array>"
  "core/bytes.hpp uses std::string and does not include <string>")
file(GLOB bad "${core}/bad_*.hpp")
file(REMOVE ${bad})

# A drawing that is not current, which the named command mends.
file(READ "${WORK_DIR}/docs/design.md" page)
string(REPLACE "r_core --> r_concepts[" "r_concepts[" stale "${page}")
file(WRITE "${WORK_DIR}/docs/design.md" "${stale}")
expect(DrawRooms.cmake "cmake -DSOURCE_DIR=. -DUPDATE=ON -P cmake/DrawRooms.cmake")
execute_process(
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=. -DUPDATE=ON -P ${SOURCE_DIR}/cmake/DrawRooms.cmake
  WORKING_DIRECTORY "${WORK_DIR}" COMMAND_ERROR_IS_FATAL ANY)
file(READ "${WORK_DIR}/docs/design.md" mended)
if(NOT mended STREQUAL page OR stale STREQUAL page)
  message(SEND_ERROR "DrawRooms.cmake with UPDATE does not make the drawing that it wants")
endif()

# A table in another order.
file(READ "${WORK_DIR}/README.md" page)
string(REGEX REPLACE "\n(. `core/`[^\n]*)\n(. `concepts/`[^\n]*)\n" "\n\\2\n\\1\n" page "${page}")
file(WRITE "${WORK_DIR}/README.md" "${page}")
expect(DrawRooms.cmake "README.md: the table of its section Rooms names concepts\\;core\\;hosts\\;")
