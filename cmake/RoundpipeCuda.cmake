# Finds the CUDA Toolkit (headers and runtime) and, apart from it, the CUDA language (nvcc) and cuDNN.
set(ROUNDPIPE_HAS_CUDA_TOOLKIT OFF)
set(ROUNDPIPE_HAS_NVCC OFF)
set(ROUNDPIPE_HAS_CUDNN OFF)
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
if(ROUNDPIPE_HAS_CUDA_TOOLKIT)
  include(${CMAKE_CURRENT_LIST_DIR}/RoundpipeCudnn.cmake)
  roundpipe_find_cudnn(${ROUNDPIPE_ENABLE_CUDNN})
endif()
# Whether this machine has a GPU, unless that is given: programs that need one and take long to
# compile are otherwise left out of `all`, and built when they are named.
if(NOT DEFINED ROUNDPIPE_HAS_GPU AND ROUNDPIPE_HAS_NVCC)
  set(ROUNDPIPE_HAS_GPU OFF)
  execute_process(COMMAND nvidia-smi -L
    RESULT_VARIABLE _status OUTPUT_VARIABLE _gpus ERROR_QUIET)
  if(_status EQUAL 0 AND _gpus MATCHES "GPU 0")
    set(ROUNDPIPE_HAS_GPU ON)
  endif()
endif()
message(STATUS
  "roundpipe: CUDA toolkit ${ROUNDPIPE_HAS_CUDA_TOOLKIT}, nvcc ${ROUNDPIPE_HAS_NVCC}, cuDNN ${ROUNDPIPE_HAS_CUDNN}")
