# Finds the CUDA Toolkit (headers and runtime) and, apart from it, the CUDA language (nvcc).
set(ROUNDPIPE_HAS_CUDA_TOOLKIT OFF)
set(ROUNDPIPE_HAS_NVCC OFF)
if(NOT ROUNDPIPE_ENABLE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ROUNDPIPE_ENABLE_CUDA is '${ROUNDPIPE_ENABLE_CUDA}': want AUTO, ON or OFF")
endif()
if(ROUNDPIPE_ENABLE_CUDA STREQUAL "OFF")
  return()
endif()

find_package(CUDAToolkit 13.0 QUIET)
if(CUDAToolkit_FOUND)
  find_package(CCCL 3.0 CONFIG QUIET
    HINTS "${CUDAToolkit_TARGET_DIR}/lib64/cmake" "${CUDAToolkit_TARGET_DIR}/lib/cmake")
endif()
if(CUDAToolkit_FOUND AND CCCL_FOUND)
  set(ROUNDPIPE_HAS_CUDA_TOOLKIT ON)
elseif(ROUNDPIPE_ENABLE_CUDA STREQUAL "ON")
  message(FATAL_ERROR
    "ROUNDPIPE_ENABLE_CUDA is ON, but no CUDA Toolkit 13 with CCCL 3 was found. Name its folder with -DCUDAToolkit_ROOT=..., or set ROUNDPIPE_ENABLE_CUDA=OFF.")
endif()

if(ROUNDPIPE_HAS_CUDA_TOOLKIT AND ROUNDPIPE_NEEDS_NVCC)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    enable_language(CUDA)
    set(ROUNDPIPE_HAS_NVCC ON)
  elseif(ROUNDPIPE_ENABLE_CUDA STREQUAL "ON")
    message(FATAL_ERROR
      "ROUNDPIPE_ENABLE_CUDA is ON, but no nvcc was found. Name it with -DCMAKE_CUDA_COMPILER=..., or set ROUNDPIPE_ENABLE_CUDA=OFF.")
  endif()
endif()
message(STATUS
  "roundpipe: CUDA toolkit ${ROUNDPIPE_HAS_CUDA_TOOLKIT}, nvcc ${ROUNDPIPE_HAS_NVCC}")
