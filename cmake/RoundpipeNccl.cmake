# roundpipe_find_nccl(<AUTO|ON|OFF>) sets ROUNDPIPE_HAS_NCCL. If NCCL 2.18 or later is there, it makes
# the target roundpipe_nccl_library: found through NCCL_ROOT (a variable of CMake or of the environment),
# CMAKE_PREFIX_PATH, or in the usual places. NCCL_ROOT may be the folder .../nvidia/nccl of a Python
# wheel, or the folder that holds nvidia/nccl.
#
# The library's build and the installed package both read this file, so the package contains no path
# of the machine that built it.
function(roundpipe_find_nccl enable)
  set(ROUNDPIPE_HAS_NCCL OFF PARENT_SCOPE)
  if(NOT enable MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "ROUNDPIPE_ENABLE_NCCL is '${enable}': must be AUTO, ON or OFF")
  endif()
  if(enable STREQUAL "OFF")
    return()
  endif()
  set(hints ${NCCL_ROOT} $ENV{NCCL_ROOT} ${CUDAToolkit_TARGET_DIR})
  find_path(ROUNDPIPE_NCCL_INCLUDE_DIR nccl.h
    HINTS ${hints} PATH_SUFFIXES include nvidia/nccl/include
    DOC "The folder of NCCL's header.")
  find_library(ROUNDPIPE_NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR
    HINTS ${hints} PATH_SUFFIXES lib lib64 nvidia/nccl/lib
    DOC "NCCL's library.")
  mark_as_advanced(ROUNDPIPE_NCCL_INCLUDE_DIR ROUNDPIPE_NCCL_LIBRARY)

  set(missing)
  if(NOT ROUNDPIPE_NCCL_INCLUDE_DIR OR NOT ROUNDPIPE_NCCL_LIBRARY)
    set(missing "NCCL was not found. Name its folder with -DNCCL_ROOT=...")
  else()
    file(STRINGS "${ROUNDPIPE_NCCL_INCLUDE_DIR}/nccl.h" lines
      REGEX "define NCCL_(MAJOR|MINOR) [0-9]+")
    string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" version "${lines}")
    if(version VERSION_LESS 2.18)
      set(missing "${ROUNDPIPE_NCCL_INCLUDE_DIR} holds NCCL ${version}, and 2.18 is needed")
    endif()
  endif()
  if(missing)
    if(enable STREQUAL "ON")
      message(FATAL_ERROR
        "ROUNDPIPE_ENABLE_NCCL is ON, but ${missing}, or set ROUNDPIPE_ENABLE_NCCL=OFF.")
    endif()
    return()
  endif()

  if(NOT TARGET roundpipe_nccl_library)
    add_library(roundpipe_nccl_library INTERFACE IMPORTED GLOBAL)
    target_include_directories(roundpipe_nccl_library SYSTEM INTERFACE
      "${ROUNDPIPE_NCCL_INCLUDE_DIR}")
    target_link_libraries(roundpipe_nccl_library INTERFACE "${ROUNDPIPE_NCCL_LIBRARY}")
  endif()
  set(ROUNDPIPE_HAS_NCCL ON PARENT_SCOPE)
endfunction()
