# cmake -DCXX=<compiler> -DCXX_ID=<GNU or Clang> -DINCLUDE_DIR=<include> -DFILE=<file.cpp>
#   -P RunCompileFail.cmake
# Passes only if the control compiles, the file itself does not, and each `// expect-error:` matches
# one error or note of the compiler. The script drops the source lines that the compiler echoes, so
# no expectation can match itself.
cmake_minimum_required(VERSION 3.25)
get_filename_component(name "${FILE}" NAME)

file(STRINGS "${FILE}" expected REGEX "// expect-error: ")
if(NOT expected)
  message(FATAL_ERROR "${name} has no line '// expect-error: <regex>'")
endif()

set(ENV{LC_ALL} C)
set(no_caret -fno-diagnostics-show-caret)
if(CXX_ID STREQUAL "Clang")
  set(no_caret -fno-caret-diagnostics)
endif()
set(command "${CXX}" -std=c++20 -fsyntax-only -Wall -Wextra -I "${INCLUDE_DIR}")

execute_process(COMMAND ${command} -DROUNDPIPE_CONTROL "${FILE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the control of ${name} (with ROUNDPIPE_CONTROL) does not compile:\n${out}")
endif()

execute_process(
  COMMAND ${command} -fmessage-length=0 -fdiagnostics-color=never ${no_caret} "${FILE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(status EQUAL 0)
  message(FATAL_ERROR "${name} compiles, but must not")
endif()

# Splits lines by hand: brackets and semicolons in C++ diagnostics do not survive CMake's lists.
foreach(line IN LISTS expected)
  string(REGEX REPLACE ".*// expect-error: (.*)" "\\1" regex "${line}")
  set(found FALSE)
  set(rest "${out}")
  while(NOT found AND NOT rest STREQUAL "")
    string(FIND "${rest}\n" "\n" end)
    string(SUBSTRING "${rest}" 0 ${end} diagnostic)
    math(EXPR end "${end} + 1")
    string(LENGTH "${rest}" length)
    if(end LESS length)
      string(SUBSTRING "${rest}" ${end} -1 rest)
    else()
      set(rest "")
    endif()
    if(diagnostic MATCHES "(error|note|required).*" AND CMAKE_MATCH_0 MATCHES "${regex}")
      set(found TRUE)
    endif()
  endwhile()
  if(NOT found)
    message(FATAL_ERROR "${name} fails for another reason than '${regex}':\n${out}")
  endif()
endforeach()
