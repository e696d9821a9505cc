# cmake -DSOURCE_DIR=<root> -DCXX=<compiler> -DWORK_DIR=<folder> -P mistakes_are_found.cmake
# The check of files that must not compile: what it accepts, and why it fails.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
file(WRITE "${WORK_DIR}/header.hpp" [[
#pragma once
template <class T> void point(T t) { int* const p = t; }
]])
set(id GNU)
if(CXX MATCHES "clang")
  set(id Clang)
endif()

# expect(<what is said of it, a regex> <expectations, lines> <code>)
function(expect said expectations code)
  file(WRITE "${WORK_DIR}/files/it.cpp" "#include <header.hpp>\n${expectations}\n${code}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DCXX=${CXX} -DCXX_ID=${id} -DINCLUDE_DIR=${WORK_DIR}
      -DFILE=${WORK_DIR}/files/it.cpp -DWORK_DIR=${WORK_DIR}/check
      -P ${SOURCE_DIR}/cmake/RunCompileFail.cmake
    OUTPUT_VARIABLE out ERROR_VARIABLE out)
  file(REMOVE_RECURSE "${WORK_DIR}/check")
  if(NOT out MATCHES "${said}")
    message(SEND_ERROR "of '${expectations}' the check does not say '${said}':\n${out}")
  endif()
endfunction()

set(code [[
#if defined(NUMBER)
int const i = nullptr;
static_assert(false, "second");
#elif defined(AT_END)
void f() { point(1); }
#endif
]])
set(number "// expect-error NUMBER: nullptr")
set(at_end "// expect-error AT_END: 'int'")
expect("-- it.cpp with NUMBER: .*-- it.cpp with AT_END: " "${number}\n${at_end}" "${code}")
expect("-- it.cpp with NUMBER: " "// expect-error: const int|convert\n${number}" "${code}")
expect("NUMBER fails for another reason than 'text'" "// expect-error NUMBER: text" "${code}")
expect("NUMBER fails for another reason than 'text'" "// expect-error: text\n${number}" "${code}")
expect("NUMBER fails for another reason than 'second'" "// expect-error NUMBER: second" "${code}")
expect("with NOTHING compiles, but must not" "// expect-error NOTHING: nullptr" "${code}")
expect("this is not '// expect-error" "// expect-error NUMBER nullptr" "${code}")

# A file without macros: its control is all but the mistake.
set(code "#ifndef ROUNDPIPE_CONTROL\nint const i = nullptr;\n#endif\n")
expect("-- it.cpp: " "// expect-error: nullptr" "${code}")
expect("it.cpp fails for another reason than 'text'" "// expect-error: text" "${code}")
expect("the control of it.cpp .*does not compile" "// expect-error: i" "int const i = nullptr;\n")
