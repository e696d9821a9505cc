# GCC that clears its own memory less often takes an eighth less time, and 0.4 GB more.
set(ROUNDPIPE_COMPILER_MEMORY)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ROUNDPIPE_COMPILER_MEMORY --param=ggc-min-heapsize=1048576)
endif()

# roundpipe_program: the compile options of our tests, examples and benches. They never reach the
# library's own targets, so users keep their own flags.
add_library(roundpipe_program INTERFACE)
target_compile_options(roundpipe_program INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Werror>
  # nvcc hands generated code to g++. That code fails -Wpedantic, -Wconversion and -Wshadow, and
  # puts parentheses around every array of member pointers.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-parentheses,-Werror;-Werror=all-warnings>
  # GCC 12 finds a false overlap in `"literal" + std::string` when it optimizes (its bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CXX>:${ROUNDPIPE_COMPILER_MEMORY}>
  # Clang blames the caller of std::stable_sort for a deprecated function that libstdc++ 12 calls.
  # Its -Wconversion includes -Wsign-conversion, which GCC's does not in C++.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations;-Wno-sign-conversion>
  # With -march=native, clang fuses products and sums that GCC 12 does not fuse. Tests compare pictures
  # and plans byte for byte.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-ffp-contract=off>
  # GCC 12 and 13 take a vector that has just grown for one of no size.
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,14>>:-Wno-stringop-overflow>)

if(ROUNDPIPE_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native ROUNDPIPE_HAS_MARCH_NATIVE)
  if(ROUNDPIPE_HAS_MARCH_NATIVE)
    # GCC before 13 takes the undefined vectors in its own AVX-512 header for uninitialized ones
    # (GCC bug 105593), wherever Eigen is inlined. Builds without ROUNDPIPE_NATIVE keep the warnings.
    target_compile_options(roundpipe_program INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-march=native>
      $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-uninitialized;-Wno-maybe-uninitialized>)
  endif()
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
# For editors, and for the test package.find_package.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
