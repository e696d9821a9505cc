# roundpipe_add_compile_fail_test(<file>)
# One or more lines `// expect-error: <regex>` in the file state what the compiler must say. With
# ROUNDPIPE_CONTROL defined, the same file must compile. A file may hold several mistakes: a line
# `// expect-error MACRO: <regex>` is about the file with MACRO defined.
#
# Where g++ builds the tests, clang must also say so, if it is installed.
find_program(ROUNDPIPE_CLANG NAMES clang++-16 clang++-19
  DOC "clang for the tests of code that must not compile, beside g++")
function(roundpipe_add_compile_fail_test file)
  get_filename_component(name "${file}" NAME_WE)
  set(compilers "${CMAKE_CXX_COMPILER}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND ROUNDPIPE_CLANG)
    list(APPEND compilers "${ROUNDPIPE_CLANG}")
  endif()
  set(test compile_fail.${name})
  set(id ${CMAKE_CXX_COMPILER_ID})
  foreach(compiler IN LISTS compilers)
    add_test(NAME ${test}
      COMMAND ${CMAKE_COMMAND}
        -DCXX=${compiler}
        -DCXX_ID=${id}
        -DINCLUDE_DIR=${PROJECT_SOURCE_DIR}/include
        -DFILE=${file}
        -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/${test}
        -P ${PROJECT_SOURCE_DIR}/cmake/RunCompileFail.cmake)
    set_tests_properties(${test} PROPERTIES LABELS house)
    set(test ${test}.clang)
    set(id Clang)
  endforeach()
endfunction()
