# roundpipe_find_cudnn(<AUTO|ON|OFF>) sets ROUNDPIPE_HAS_CUDNN. If cuDNN is there, it makes the
# target roundpipe_cudnn: cuDNN 9 with the headers of cudnn-frontend, found through CUDNN_ROOT and
# CUDNN_FRONTEND_ROOT (variables of CMake or of the environment), CMAKE_PREFIX_PATH, or in the usual
# places. CUDNN_ROOT may be the folder .../nvidia/cudnn of a Python wheel, or the folder that holds
# nvidia/cudnn.
#
# The library's build and the installed package both read this file, so the package contains no path
# of the machine that built it.
function(roundpipe_find_cudnn enable)
  set(ROUNDPIPE_HAS_CUDNN OFF PARENT_SCOPE)
  if(NOT enable MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "ROUNDPIPE_ENABLE_CUDNN is '${enable}': must be AUTO, ON or OFF")
  endif()
  if(enable STREQUAL "OFF")
    return()
  endif()
  set(hints ${CUDNN_ROOT} $ENV{CUDNN_ROOT} ${CUDAToolkit_TARGET_DIR})
  find_path(ROUNDPIPE_CUDNN_INCLUDE_DIR cudnn.h
    HINTS ${hints} PATH_SUFFIXES include nvidia/cudnn/include
    DOC "The folder of cuDNN's headers.")
  find_library(ROUNDPIPE_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 NAMES_PER_DIR
    HINTS ${hints} PATH_SUFFIXES lib lib64 nvidia/cudnn/lib
    DOC "cuDNN's library.")
  find_path(ROUNDPIPE_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
    HINTS ${CUDNN_FRONTEND_ROOT} $ENV{CUDNN_FRONTEND_ROOT} ${hints}
    PATH_SUFFIXES include
    DOC "The folder of cudnn-frontend's headers.")
  mark_as_advanced(ROUNDPIPE_CUDNN_INCLUDE_DIR ROUNDPIPE_CUDNN_LIBRARY
    ROUNDPIPE_CUDNN_FRONTEND_INCLUDE_DIR)

  set(missing)
  if(NOT ROUNDPIPE_CUDNN_INCLUDE_DIR OR NOT ROUNDPIPE_CUDNN_LIBRARY)
    list(APPEND missing "cuDNN (name its folder with -DCUDNN_ROOT=...)")
  else()
    file(STRINGS "${ROUNDPIPE_CUDNN_INCLUDE_DIR}/cudnn_version.h" line
      REGEX "define CUDNN_MAJOR [0-9]+")
    if(NOT line MATCHES "CUDNN_MAJOR 9$")
      list(APPEND missing "cuDNN 9 (${ROUNDPIPE_CUDNN_INCLUDE_DIR} holds another version)")
    endif()
  endif()
  if(NOT ROUNDPIPE_CUDNN_FRONTEND_INCLUDE_DIR)
    list(APPEND missing "cudnn-frontend (name its folder with -DCUDNN_FRONTEND_ROOT=...)")
  endif()
  if(missing)
    list(JOIN missing " and " missing)
    if(enable STREQUAL "ON")
      message(FATAL_ERROR
        "ROUNDPIPE_ENABLE_CUDNN is ON, but this was not found: ${missing}. Or set ROUNDPIPE_ENABLE_CUDNN=OFF.")
    endif()
    return()
  endif()

  if(NOT TARGET roundpipe_cudnn)
    add_library(roundpipe_cudnn INTERFACE IMPORTED GLOBAL)
    target_include_directories(roundpipe_cudnn SYSTEM INTERFACE
      "${ROUNDPIPE_CUDNN_INCLUDE_DIR}" "${ROUNDPIPE_CUDNN_FRONTEND_INCLUDE_DIR}")
    # NVRTC: an engine in cudnn-frontend's headers calls it, though not for attention.
    target_link_libraries(roundpipe_cudnn INTERFACE "${ROUNDPIPE_CUDNN_LIBRARY}" CUDA::nvrtc)
    # Only serialized graphs would need JSON.
    target_compile_definitions(roundpipe_cudnn INTERFACE
      ROUNDPIPE_HAS_CUDNN=1 CUDNN_FRONTEND_SKIP_JSON_LIB)
  endif()
  set(ROUNDPIPE_HAS_CUDNN ON PARENT_SCOPE)
endfunction()
