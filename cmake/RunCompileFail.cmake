# cmake -DCXX=<compiler> -DCXX_ID=<GNU or Clang> -DINCLUDE_DIR=<include> -DFILE=<file.cpp>
#   -DWORK_DIR=<folder> -P RunCompileFail.cmake
# Passes only if the control compiles, the file does not with any of its mistakes, and each
# `// expect-error:` matches one line of the compiler's first error, which takes at most 25 lines:
# all that is said until the second error. The script drops the source lines that the compiler
# echoes, so no expectation can match itself.
cmake_minimum_required(VERSION 3.25)
get_filename_component(name "${FILE}" NAME)
get_filename_component(folder "${FILE}" DIRECTORY)
set(most_lines 25)

file(STRINGS "${FILE}" expected REGEX "// expect-error")
if(NOT expected)
  message(FATAL_ERROR "${name} has no line '// expect-error: <regex>'")
endif()
set(mistakes)
foreach(line IN LISTS expected)
  if(NOT line MATCHES "^ *// expect-error( ([A-Z0-9_]+))?: .")
    message(FATAL_ERROR "${name}: this is not '// expect-error [MACRO]: <regex>': ${line}")
  endif()
  list(APPEND mistakes ${CMAKE_MATCH_2})
endforeach()
list(REMOVE_DUPLICATES mistakes)

set(ENV{LC_ALL} C)
set(no_caret -fno-diagnostics-show-caret)
if(CXX_ID STREQUAL "Clang")
  set(no_caret -fno-caret-diagnostics)
endif()
set(command "${CXX}" -std=c++20 -Wall -Wextra -I "${INCLUDE_DIR}" -I "${folder}/..")

# The headers of a file with several mistakes are read once. Definitions are of no interest here.
if(mistakes)
  list(APPEND command -DROUNDPIPE_COMPILED)
  file(STRINGS "${FILE}" includes REGEX "^#include <")
  list(JOIN includes "\n" includes)
  file(WRITE "${WORK_DIR}/headers.hpp" "${includes}\n")
  set(once)
  if(CXX_ID STREQUAL "Clang")
    set(once -fpch-instantiate-templates) # what the headers instantiate; else each mistake does
  endif()
  set(precompiled "${WORK_DIR}/headers.hpp.gch")
  execute_process(
    COMMAND ${command} ${once} -x c++-header "${WORK_DIR}/headers.hpp" -o "${precompiled}"
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the headers of ${name} do not compile:\n${out}")
  endif()
  list(APPEND command -include "${WORK_DIR}/headers.hpp")
endif()
list(APPEND command -fsyntax-only)

execute_process(COMMAND ${command} -DROUNDPIPE_CONTROL "${FILE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the control of ${name} (with ROUNDPIPE_CONTROL) does not compile:\n${out}")
endif()

# Reads the lines by hand: brackets and semicolons in C++ diagnostics do not survive CMake's lists.
function(take_line text line)
  string(FIND "${${text}}\n" "\n" end)
  string(SUBSTRING "${${text}}" 0 ${end} taken)
  string(LENGTH "${${text}}" length)
  math(EXPR end "${end} + 1")
  set(left "")
  if(end LESS length)
    string(SUBSTRING "${${text}}" ${end} -1 left)
  endif()
  set(${line} "${taken}" PARENT_SCOPE)
  set(${text} "${left}" PARENT_SCOPE)
endfunction()

# The file, and behind it an error at which compilers stop. So they do not go on to what the headers
# alone instantiate, which takes GCC most of the time.
set(end "this is the end of the file")
file(WRITE "${WORK_DIR}/ended.cpp" "#include <${FILE}>\nstatic_assert(false, \"${end}\");\n")
set(stop_at_first -fmax-errors=1)
if(CXX_ID STREQUAL "Clang")
  set(stop_at_first -ferror-limit=1)
endif()

# Fails unless the file, with the macro \p mistake defined if it is not empty, does so as expected.
function(check_mistake mistake)
  set(define)
  set(what "${name}")
  if(mistake)
    set(define -D${mistake})
    set(what "${name} with ${mistake}")
  endif()
  list(APPEND command ${define} -fmessage-length=0 -fdiagnostics-color=never ${no_caret})
  execute_process(COMMAND ${command} ${stop_at_first} "${WORK_DIR}/ended.cpp"
    OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(out MATCHES "${end}") # what is instantiated behind the end may be wrong
    execute_process(COMMAND ${command} "${FILE}"
      RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
    if(status EQUAL 0)
      message(FATAL_ERROR "${what} compiles, but must not")
    endif()
  endif()

  set(first "")
  set(rest "${out}")
  set(errors 0)
  set(lines 0)
  while(NOT rest STREQUAL "")
    take_line(rest line)
    if(line MATCHES " error: ")
      math(EXPR errors "${errors} + 1")
    endif()
    if(errors EQUAL 2 OR line MATCHES "^compilation terminated")
      break()
    endif()
    math(EXPR lines "${lines} + 1")
    string(APPEND first "${line}\n")
  endwhile()
  if(lines GREATER most_lines)
    message(FATAL_ERROR "the first error of ${what} takes ${lines} lines, not ${most_lines}:\n${out}")
  endif()

  foreach(expectation IN LISTS expected)
    string(REGEX MATCH "// expect-error( ([A-Z0-9_]+))?: (.*)" _ "${expectation}")
    set(of_mistake "${CMAKE_MATCH_2}") # empty: of all
    set(regex "${CMAKE_MATCH_3}")
    if(NOT of_mistake STREQUAL "" AND NOT of_mistake STREQUAL mistake)
      continue()
    endif()
    set(found FALSE)
    set(rest "${first}")
    while(NOT found AND NOT rest STREQUAL "")
      take_line(rest line)
      if(line MATCHES "(error|note|required|In instantiation of).*"
         AND CMAKE_MATCH_0 MATCHES "${regex}")
        set(found TRUE)
      endif()
    endwhile()
    if(NOT found)
      message(FATAL_ERROR "${what} fails for another reason than '${regex}':\n${out}")
    endif()
  endforeach()
  message(STATUS "${what}: ${lines} lines")
endfunction()

if(mistakes)
  foreach(mistake IN LISTS mistakes)
    check_mistake(${mistake})
  endforeach()
else()
  check_mistake("")
endif()
