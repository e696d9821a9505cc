# cmake -DKIND=<find_package|add_subdirectory> -DCUDA=<ON|OFF> -DNVCC=<nvcc, or empty>
#   -DBUILD_DIR=<our own build> -DFLAGS=... -DROUNDPIPE_SOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=...
#   -DCXX=... -DVERSION=... -P RunConsumer.cmake
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/install.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
set(consumer_arguments ${install_arguments} -DCONSUMER_CUDA=${CUDA})
if(NOT CUDA)
  list(APPEND consumer_arguments -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
endif()
if(CUDA AND NVCC)
  list(APPEND consumer_arguments "-DCMAKE_CUDA_COMPILER=${NVCC}" -DCMAKE_CUDA_ARCHITECTURES=90)
endif()
set(compiled OFF)
if(KIND STREQUAL "find_package" AND NOT CUDA)
  set(compiled ON)
endif()
list(APPEND consumer_arguments -DCONSUMER_COMPILED=${compiled})
if(KIND STREQUAL "find_package")
  install_library("${WORK_DIR}" ${CUDA} ${compiled})
  list(APPEND consumer_arguments "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix")
else()
  list(APPEND consumer_arguments
    "-DROUNDPIPE_SOURCE_DIR=${ROUNDPIPE_SOURCE_DIR}" -DROUNDPIPE_ENABLE_CUDA=${CUDA})
endif()

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/${KIND}" -B "${WORK_DIR}/consumer"
  ${consumer_arguments})
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/consumer" --config Debug)

set(programs consumer)
if(compiled)
  list(APPEND programs consumer_compiled)
endif()
if(CUDA)
  set(programs consumer_cuda)
  if(NVCC)
    list(APPEND programs consumer_nvcc)
  endif()
endif()
foreach(program IN LISTS programs)
  run("${WORK_DIR}/consumer/bin/${program}")
  if(NOT out MATCHES "^roundpipe ${VERSION}\n")
    message(FATAL_ERROR "${program} printed '${out}', not 'roundpipe ${VERSION}'")
  endif()
endforeach()
