# roundpipe_add_header_checks(<test> LANGUAGE <CXX|CUDA> LIBS <target>... HEADERS <header>...
#   [TOGETHER <header>...] [WITH_DEFINITIONS])
# A header may not need what comes before it, so each header of HEADERS is compiled after nothing but
# headers that it includes itself, perhaps through others. A translation unit is a chain of headers,
# each of which includes the one before (when CMake configures); each is included twice. With TOGETHER, one
# more unit includes all headers, and those of TOGETHER; elsewhere the umbrella, which package.find_package
# compiles with the same warnings, and the unit tests do. The test reads the symbols of all units: a header
# defines nothing that a second unit would define again.
# With WITH_DEFINITIONS the chains are compiled as roundpipe::compiled is: a header's own definitions
# (impl/NAME.ipp) follow it, and what they include, the next header includes, too.
# C++ reads the standard library from a precompiled header, which halves the time and hides a missing
# #include of a standard header: CheckStandardIncludes.cmake looks for these. Reading it takes longer
# with each header in it: these are the ones that most of ours include.
set(_standard_headers <algorithm> <array> <atomic> <cmath> <cstddef> <cstdint> <functional> <limits> <map>
  <memory> <mutex> <optional> <set> <span> <string> <tuple> <type_traits> <utility> <vector>)
# Parsed, never run. Eigen that vectorizes includes the headers of all vector instructions.
set(_header_flags -O0 -g0 -DEIGEN_DONT_VECTORIZE)
file(CONFIGURE OUTPUT headers/none.cpp CONTENT "")
add_library(headers.precompiled OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers/none.cpp)
target_link_libraries(headers.precompiled PRIVATE roundpipe::roundpipe roundpipe_program)
target_compile_options(headers.precompiled PRIVATE ${_header_flags})
target_precompile_headers(headers.precompiled PRIVATE ${_standard_headers})

include(${CMAKE_CURRENT_LIST_DIR}/HeaderChains.cmake)

function(roundpipe_add_header_checks test)
  cmake_parse_arguments(ARG "WITH_DEFINITIONS" "LANGUAGE" "LIBS;HEADERS;TOGETHER" ${ARGN})
  list(TRANSFORM ARG_HEADERS REPLACE "^include/" "")
  list(TRANSFORM ARG_TOGETHER REPLACE "^include/" "")
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/headers/${test}")
  set(ext cpp)
  if(ARG_LANGUAGE STREQUAL "CUDA")
    set(ext cu)
  endif()
  if(ARG_WITH_DEFINITIONS)
    foreach(file IN LISTS ROUNDPIPE_DEFINITIONS)
      if(file MATCHES "^include/((.+)/impl/([^/]+)\\.ipp)$")
        set(definitions_${CMAKE_MATCH_2}/${CMAKE_MATCH_3}.hpp ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endif()
  chain_headers("${PROJECT_SOURCE_DIR}/include" "${ARG_HEADERS}")
  set(sources)
  foreach(end IN LISTS ARG_HEADERS)
    if(end IN_LIST followed)
      continue()
    endif()
    set(content)
    set(header ${end})
    while(header)
      set(link "#include <${header}>\n#include <${header}>\n")
      if(definitions_${header})
        # inline, as in header-only mode: g++ then reads them and generates no code.
        string(APPEND link "#undef ROUNDPIPE_INLINE\n#define ROUNDPIPE_INLINE inline\n"
          "#include <${definitions_${header}}>\n")
      endif()
      string(PREPEND content "${link}")
      set(header ${before_${header}})
    endwhile()
    file(CONFIGURE OUTPUT "${dir}/${end}.${ext}" CONTENT "@content@" @ONLY)
    list(APPEND sources "${dir}/${end}.${ext}")
  endforeach()
  if(ARG_WITH_DEFINITIONS)
    set_source_files_properties(${sources} PROPERTIES COMPILE_DEFINITIONS ROUNDPIPE_COMPILED)
  endif()
  if(ARG_TOGETHER)
    list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "#include <\\1>\n" OUTPUT_VARIABLE all)
    list(TRANSFORM ARG_TOGETHER REPLACE "(.+)" "#include <\\1>\n" OUTPUT_VARIABLE together)
    string(JOIN "" all ${all} ${together})
    file(CONFIGURE OUTPUT "${dir}/all.${ext}" CONTENT "@all@" @ONLY)
    list(APPEND sources "${dir}/all.${ext}")
  endif()
  add_library(${test} OBJECT ${sources})
  target_link_libraries(${test} PRIVATE ${ARG_LIBS} roundpipe_program)
  target_compile_options(${test} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${_header_flags}>")
  if(ARG_LANGUAGE STREQUAL "CXX")
    target_precompile_headers(${test} REUSE_FROM headers.precompiled)
  endif()
  add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=$<TARGET_OBJECTS:${test}>"
    -P ${PROJECT_SOURCE_DIR}/cmake/CheckSymbols.cmake)
  set_tests_properties(${test} PROPERTIES LABELS house)
endfunction()
