# roundpipe_add_header_checks(<test> LANGUAGE <CXX|CUDA> LIBS <target>... HEADERS <header>...
#   [TOGETHER <header>...])
# One translation unit for each header of HEADERS includes it twice and nothing else: a header may
# not need what comes before it. One more includes all of them, and those of TOGETHER. The test reads
# the symbols of all units: a header defines nothing that a second unit would define again.
# With TOGETHER, for C++, the units of single headers are compiled as roundpipe::compiled is: each
# reads its own definitions (impl/NAME.ipp) and no others.
# C++ reads the standard library from a precompiled header, which halves the time and hides a missing
# #include of a standard header: CheckStandardIncludes.cmake looks for these. Reading it takes longer
# with each header in it: these are the ones that most of ours include.
set(_standard_headers <algorithm> <array> <atomic> <cmath> <cstddef> <cstdint> <functional> <limits> <map>
  <memory> <mutex> <optional> <set> <span> <string> <tuple> <type_traits> <utility> <vector>)
set(_header_flags -O0 -g0) # parsed, never run
file(CONFIGURE OUTPUT headers/none.cpp CONTENT "")
add_library(headers.precompiled OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers/none.cpp)
target_link_libraries(headers.precompiled PRIVATE roundpipe::roundpipe roundpipe_program)
target_compile_options(headers.precompiled PRIVATE ${_header_flags})
target_precompile_headers(headers.precompiled PRIVATE ${_standard_headers})

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
    string(REGEX REPLACE "/([^/]+)\\.hpp$" "/impl/\\1.ipp" definitions "${header}")
    if(ARG_TOGETHER AND "include/${definitions}" IN_LIST ROUNDPIPE_DEFINITIONS)
      # inline, as in header-only mode: g++ then reads them and generates no code.
      string(APPEND content "#undef ROUNDPIPE_INLINE\n#define ROUNDPIPE_INLINE inline\n"
        "#include <${definitions}>\n")
    endif()
    file(CONFIGURE OUTPUT "${dir}/${header}.${ext}" CONTENT "@content@" @ONLY)
    list(APPEND sources "${dir}/${header}.${ext}")
    string(APPEND all "#include <${header}>\n")
  endforeach()
  foreach(path IN LISTS ARG_TOGETHER)
    string(REGEX REPLACE "^include/" "" header "${path}")
    string(APPEND all "#include <${header}>\n")
  endforeach()
  file(CONFIGURE OUTPUT "${dir}/all.${ext}" CONTENT "@all@" @ONLY)
  if(ARG_LANGUAGE STREQUAL "CXX" AND ARG_TOGETHER)
    set_source_files_properties(${sources} PROPERTIES COMPILE_DEFINITIONS ROUNDPIPE_COMPILED)
  endif()
  add_library(${test} OBJECT ${sources} "${dir}/all.${ext}")
  target_link_libraries(${test} PRIVATE ${ARG_LIBS} roundpipe_program)
  target_compile_options(${test} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${_header_flags}>")
  if(ARG_LANGUAGE STREQUAL "CXX")
    target_precompile_headers(${test} REUSE_FROM headers.precompiled)
  endif()
  add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=$<TARGET_OBJECTS:${test}>"
    -P ${PROJECT_SOURCE_DIR}/cmake/CheckSymbols.cmake)
  set_tests_properties(${test} PROPERTIES LABELS house)
endfunction()
