# cmake -DSOURCE_DIR=<root> -P rooms_are_checked.cmake
# Checks that CheckFloors.cmake, CheckStandardIncludes.cmake and DrawRooms.cmake find what they are
# there to find, in a copy of the tree.
cmake_minimum_required(VERSION 3.25)
set(WORK_DIR "${CMAKE_CURRENT_BINARY_DIR}/rooms_are_checked")
file(REMOVE_RECURSE "${WORK_DIR}")
file(COPY "${SOURCE_DIR}/include" "${SOURCE_DIR}/docs" "${SOURCE_DIR}/README.md"
  DESTINATION "${WORK_DIR}" FILES_MATCHING PATTERN "*pp" PATTERN "*.cuh" PATTERN "*.md")

# Runs a script on the copy. It must fail, and a message must hold `expected`.
function(expect script expected)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${WORK_DIR} -DINCLUDE_DIR=${WORK_DIR}/include/roundpipe
      -P ${SOURCE_DIR}/cmake/${script}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " text "${out}")
  string(FIND "${text}" "${expected}" position)
  if(status EQUAL 0 OR position EQUAL -1)
    message(SEND_ERROR "${script}: want a message with '${expected}', have:\n${out}")
  endif()
endfunction()

# A header of the lowest room, with one line that breaks a rule.
set(bad "${WORK_DIR}/include/roundpipe/core/bad.hpp")
function(expect_refused_by script line expected)
  file(WRITE "${bad}" "${line}\n")
  expect(${script} "${expected}")
  file(REMOVE "${bad}")
endfunction()
macro(expect_refused line expected)
  expect_refused_by(CheckFloors.cmake "${line}" "${expected}")
endmacro()
expect_refused("#include <roundpipe/plan/planner.hpp>"
  "core/bad.hpp: '#include <roundpipe/plan/planner.hpp>': core/ may not include plan/")
expect_refused("#include <roundpipe/core/none.hpp>"
  "core/bad.hpp includes core/none.hpp, which does not exist")
expect_refused("#include \"id.hpp\"" "core/bad.hpp: want #include <...> in '#include \"id.hpp\"'")
expect_refused("#include <Eigen/Dense>"
  "core/bad.hpp includes <Eigen/Dense>, and its folder may not")
expect_refused("#include <roundpipe/core/bad.hpp>" "core/bad.hpp includes itself")
string(REPEAT "\n" 300 lines)
expect_refused("${lines}" "core/bad.hpp has 301 lines: want at most 300")

# Names of the standard library without their header, and a header that includes one no more.
set(includes CheckStandardIncludes.cmake)
expect_refused_by(${includes} "std::vector<int> x;"
  "core/bad.hpp uses std::vector and does not include <vector>")
expect_refused_by(${includes} "#include <algorithm>\nauto f() { return std::ranges::none(); }"
  "core/bad.hpp uses std::ranges::none: add it to the table of CheckStandardIncludes.cmake")
expect_refused_by(${includes} "auto f() { assert(true)\; }"
  "core/bad.hpp uses assert and does not include <cassert>")
expect_refused_by(${includes} "auto operator<=>(A const&, A const&) = default\;"
  "core/bad.hpp uses operator<=> and does not include <compare> or <array>")
set(header "${WORK_DIR}/include/roundpipe/core/bytes.hpp")
file(READ "${header}" text)
string(REPLACE "#include <string>\n" "" without "${text}")
file(WRITE "${header}" "${without}")
expect(${includes} "core/bytes.hpp uses std::string and does not include <string>")
file(WRITE "${header}" "${text}")

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
expect(DrawRooms.cmake "README.md: the table of its section Rooms names concepts;core;system;")
