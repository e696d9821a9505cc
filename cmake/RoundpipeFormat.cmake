# Targets `format` (rewrites the files) and `check-format` (names the files that need it).
# clang-format 19 only: every version formats a little differently.
find_program(ROUNDPIPE_CLANG_FORMAT clang-format-19
  DOC "clang-format 19, for the targets format and check-format.")
mark_as_advanced(ROUNDPIPE_CLANG_FORMAT)
if(ROUNDPIPE_CLANG_FORMAT)
  file(GLOB_RECURSE _formatted CONFIGURE_DEPENDS
    include/*.hpp include/*.cuh include/*.ipp
    tests/*.hpp tests/*.cpp tests/*.cu
    examples/*.hpp examples/*.cpp examples/*.cu
    bench/*.hpp bench/*.cuh bench/*.cpp bench/*.cu)
  add_custom_target(format COMMAND ${ROUNDPIPE_CLANG_FORMAT} -i ${_formatted} VERBATIM)
  add_custom_target(check-format
    COMMAND ${ROUNDPIPE_CLANG_FORMAT} --dry-run --Werror ${_formatted} VERBATIM)
endif()
