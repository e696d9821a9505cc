# roundpipe_add_header_checks(<test> LANGUAGE <CXX|CUDA> LIBS <target>... HEADERS <header>...
#   [TOGETHER <header>...])
# One translation unit for each header of HEADERS includes it twice and nothing else: a header may
# not need what comes before it. One more includes all of them, and those of TOGETHER; all are linked
# together. Every header then is in two objects, so a function that is neither a template nor inline
# is a duplicate symbol.
# With TOGETHER, for C++, two units that include all are linked, and the others are only compiled, as
# roundpipe::compiled is: each reads its own definitions (impl/NAME.ipp) and no others.
# C++ reads the standard library from a precompiled header, which halves the time and hides a missing
# #include of a standard header: CheckStandardIncludes.cmake looks for these.
set(_precompiled <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <compare> <concepts>
  <condition_variable> <cstddef> <cstdint> <cstdio> <cstring> <deque> <exception> <filesystem>
  <fstream> <functional> <future> <initializer_list> <iterator> <limits> <map> <memory> <mutex> <new>
  <numbers> <numeric> <optional> <ostream> <queue> <ranges> <set> <shared_mutex> <source_location>
  <span> <sstream> <string> <string_view> <system_error> <thread> <tuple> <type_traits> <typeindex>
  <typeinfo> <unordered_map> <unordered_set> <utility> <variant> <vector>)
function(roundpipe_add_header_checks test)
  cmake_parse_arguments(ARG "" "LANGUAGE" "LIBS;HEADERS;TOGETHER" ${ARGN})
  set(ext cpp)
  if(ARG_LANGUAGE STREQUAL "CUDA")
    set(ext cu)
  endif()
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/headers/${test}")
  set(sources)
  set(all)
  set(precompiling ${test})
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
  if(ARG_LANGUAGE STREQUAL "CXX" AND ARG_TOGETHER)
    set(precompiling ${test}.alone)
    add_library(${precompiling} OBJECT ${sources})
    target_link_libraries(${precompiling} PRIVATE ${ARG_LIBS} roundpipe_program)
    target_compile_definitions(${precompiling} PRIVATE ROUNDPIPE_COMPILED)
    target_compile_options(${precompiling} PRIVATE -O0 -g0)
    file(CONFIGURE OUTPUT "${dir}/again.${ext}" CONTENT "@all@" @ONLY)
    set(sources "${dir}/again.${ext}")
  endif()
  string(APPEND all "int main() {}\n")
  file(CONFIGURE OUTPUT "${dir}/all.${ext}" CONTENT "@all@" @ONLY)
  add_executable(${test} ${sources} "${dir}/all.${ext}")
  target_link_libraries(${test} PRIVATE ${ARG_LIBS} roundpipe_program)
  target_compile_options(${test} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0;-g0>) # parsed, never run
  if(ARG_LANGUAGE STREQUAL "CXX")
    target_precompile_headers(${precompiling} PRIVATE ${_precompiled})
    if(NOT "${precompiling}" STREQUAL "${test}")
      add_dependencies(${test} ${precompiling})
    endif()
  endif()
  add_test(NAME ${test} COMMAND ${test})
  set_tests_properties(${test} PROPERTIES LABELS house)
endfunction()
