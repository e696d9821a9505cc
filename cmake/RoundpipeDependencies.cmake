# roundpipe_require(<name>...) finds the named libraries for tests, examples and benches, and looks
# for no others. It takes the system's package first; where there is none, it fetches the same
# version. The fetching was written without a network and could not be tried. If it fails, install
# the package that the message names.
#
# The library itself needs none of these.
include(FetchContent)

# Name (of the CMake package), its target, Debian's package, repository, tag.
set(_roundpipe_dependencies
  "benchmark|benchmark::benchmark_main|libbenchmark-dev|https://github.com/google/benchmark.git|v1.7.1"
  "CLI11|CLI11::CLI11|libcli11-dev|https://github.com/CLIUtils/CLI11.git|v2.1.2"
  "doctest|doctest::doctest|doctest-dev|https://github.com/doctest/doctest.git|v2.4.9"
  "Eigen3|Eigen3::Eigen|libeigen3-dev|https://gitlab.com/libeigen/eigen.git|3.4.0"
  "fmt|fmt::fmt|libfmt-dev|https://github.com/fmtlib/fmt.git|9.1.0"
  "nlohmann_json|nlohmann_json::nlohmann_json|nlohmann-json3-dev|https://github.com/nlohmann/json.git|v3.11.2"
  "range-v3|range-v3::range-v3|librange-v3-dev|https://github.com/ericniebler/range-v3.git|0.12.0"
  # RapidCheck makes no releases: this is the commit that Debian 12 ships.
  "rapidcheck|rapidcheck|librapidcheck-dev|https://github.com/emil-e/rapidcheck.git|08b5058"
  # Its header alone; neither Debian's package nor its source folder has a CMake package.
  "xxHash|xxHash::header|libxxhash-dev|https://github.com/Cyan4973/xxHash.git|v0.8.1")

# A macro, because the targets of find_package() belong to the calling folder.
macro(roundpipe_require)
  foreach(_name IN ITEMS ${ARGN})
    set(_row "${_roundpipe_dependencies}")
    list(FILTER _row INCLUDE REGEX "^${_name}\\|")
    if(NOT _row MATCHES "^([^|]+)\\|([^|]+)\\|([^|]+)\\|([^|]+)\\|([^|]+)$")
      message(FATAL_ERROR "roundpipe_require: no dependency is called '${_name}'")
    endif()
    set(_target "${CMAKE_MATCH_2}")
    set(_debian "${CMAKE_MATCH_3}")
    set(_repository "${CMAKE_MATCH_4}")
    set(_tag "${CMAKE_MATCH_5}")
    if(NOT TARGET ${_target} AND _name STREQUAL "xxHash")
      find_path(ROUNDPIPE_XXHASH_DIR xxhash.h DOC "The folder of xxhash.h")
      roundpipe_add_xxhash("${ROUNDPIPE_XXHASH_DIR}")
    elseif(NOT TARGET ${_target})
      find_package(${_name} CONFIG QUIET)
    endif()
    if(NOT TARGET ${_target})
      message(STATUS "${_name} was not found; fetching ${_tag}. (Debian has it: ${_debian})")
      FetchContent_Declare(${_name} GIT_REPOSITORY ${_repository} GIT_TAG ${_tag} SYSTEM)
      roundpipe_fetch(${_name})
      if(_name STREQUAL "xxHash")
        roundpipe_add_xxhash("${xxhash_SOURCE_DIR}")
      endif()
    endif()
  endforeach()
endmacro()

function(roundpipe_add_xxhash folder)
  if(EXISTS "${folder}/xxhash.h")
    add_library(xxHash::header INTERFACE IMPORTED GLOBAL)
    target_include_directories(xxHash::header INTERFACE "${folder}")
  endif()
endfunction()

# A function, to keep the switches below local.
function(roundpipe_fetch name)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW) # option() in old projects heeds these
  set(BUILD_TESTING OFF)                # Eigen
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  set(DOCTEST_WITH_TESTS OFF)
  set(DOCTEST_NO_INSTALL ON)
  set(EIGEN_BUILD_DOC OFF)
  set(RANGES_DOCS OFF)
  set(RANGE_V3_DOCS OFF)
  set(RANGE_V3_EXAMPLES OFF)
  set(RANGE_V3_TESTS OFF)
  FetchContent_MakeAvailable(${name})
  string(TOLOWER ${name} lower)
  set(${lower}_SOURCE_DIR "${${lower}_SOURCE_DIR}" PARENT_SCOPE)
endfunction()
