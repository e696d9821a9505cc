# roundpipe_add_compile_fail_test(<file>)
# One or more lines `// expect-error: <regex>` in the file state what the compiler must say. With
# ROUNDPIPE_CONTROL defined, the same file must compile.
function(roundpipe_add_compile_fail_test file)
  get_filename_component(name "${file}" NAME_WE)
  add_test(NAME compile_fail.${name}
    COMMAND ${CMAKE_COMMAND}
      -DCXX=${CMAKE_CXX_COMPILER}
      -DCXX_ID=${CMAKE_CXX_COMPILER_ID}
      -DINCLUDE_DIR=${PROJECT_SOURCE_DIR}/include
      -DFILE=${file}
      -P ${PROJECT_SOURCE_DIR}/cmake/RunCompileFail.cmake)
  set_tests_properties(compile_fail.${name} PROPERTIES LABELS house)
endfunction()
