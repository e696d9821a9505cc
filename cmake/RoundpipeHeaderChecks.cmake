# roundpipe_add_header_checks(<test> LANGUAGE <CXX|CUDA> LIBS <target>... HEADERS <header>...
#   [TOGETHER <header>...])
# One translation unit a header of HEADERS, alone and included twice: it needs nothing that came
# before it. One more that includes all of them. Linked together, every header is in two objects,
# so a function that is neither a template nor inline is a duplicate symbol.
# Headers of TOGETHER are compiled in that last translation unit only.
function(roundpipe_add_header_checks test)
  cmake_parse_arguments(ARG "" "LANGUAGE" "LIBS;HEADERS;TOGETHER" ${ARGN})
  set(ext cpp)
  if(ARG_LANGUAGE STREQUAL "CUDA")
    set(ext cu)
  endif()
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/headers/${test}")
  set(sources)
  set(all)
  foreach(path IN LISTS ARG_HEADERS)
    string(REGEX REPLACE "^include/" "" header "${path}")
    set(content "#include <${header}>\n#include <${header}>\n")
    file(CONFIGURE OUTPUT "${dir}/${header}.${ext}" CONTENT "@content@" @ONLY)
    list(APPEND sources "${dir}/${header}.${ext}")
    string(APPEND all "#include <${header}>\n")
  endforeach()
  foreach(path IN LISTS ARG_TOGETHER)
    string(REGEX REPLACE "^include/" "" header "${path}")
    string(APPEND all "#include <${header}>\n")
  endforeach()
  string(APPEND all "int main() {}\n")
  file(CONFIGURE OUTPUT "${dir}/all.${ext}" CONTENT "@all@" @ONLY)
  add_executable(${test} ${sources} "${dir}/all.${ext}")
  target_link_libraries(${test} PRIVATE ${ARG_LIBS} roundpipe_program)
  target_compile_options(${test} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0;-g0>) # parsed, never run
  add_test(NAME ${test} COMMAND ${test})
  set_tests_properties(${test} PROPERTIES LABELS house)
endfunction()
