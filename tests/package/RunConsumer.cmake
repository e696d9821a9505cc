# cmake -DKIND=<find_package|add_subdirectory> -DCUDA=<ON|OFF> -DNVCC=<nvcc, or empty>
#   -DBUILD_DIR=<our own build> -DFLAGS=... -DROUNDPIPE_SOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=...
#   -DCXX=... -DVERSION=... -P RunConsumer.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  list(JOIN ARGN " " command)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${command}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# find_compilation(<build> <source> <result>): the arguments by which a build compiles compiled/<source>
function(find_compilation build source result)
  file(STRINGS "${build}/compile_commands.json" line REGEX "\"command\":.* -c [^ ]*compiled/${source}\"")
  string(REGEX REPLACE "^ *\"command\": \"(.*)\",?$" "\\1" command "${line}")
  separate_arguments(arguments UNIX_COMMAND "${command}")
  set(${result} "${arguments}" PARENT_SCOPE)
endfunction()

# take_library(<build>): puts our own library into a user's build. Compiling it again would take a
# minute. The files to compile must be the same; our command has each argument of the user's, and adds
# warnings, asserts and optimization.
function(take_library build)
  file(GLOB sources RELATIVE "${build}/compiled" "${build}/compiled/*.cpp")
  if(NOT sources)
    message(FATAL_ERROR "${build} has no files of roundpipe::compiled")
  endif()
  foreach(source IN LISTS sources)
    set(file "${build}/compiled/${source}")
    run("${CMAKE_COMMAND}" -E compare_files "${file}" "${BUILD_DIR}/compiled/${source}")
    find_compilation("${build}" ${source} theirs)
    find_compilation("${BUILD_DIR}" ${source} ours)
    list(REMOVE_ITEM theirs ${ours})
    if(NOT theirs STREQUAL file)
      message(FATAL_ERROR "a user compiles ${file} with '${theirs}', we with '${ours}'")
    endif()
  endforeach()
  file(COPY "${BUILD_DIR}/libroundpipe_compiled.a" DESTINATION "${build}")
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
# Debug builds without debug information, which takes a third of their time, and without optimized
# kernels, which nobody launches.
set(arguments -G "${GENERATOR}" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=${CXX}"
  "-DCMAKE_CXX_FLAGS_DEBUG=${FLAGS}" "-DCMAKE_CUDA_FLAGS_DEBUG=--Ofast-compile max")
# Nothing but the standard library: searching for any of these fails or finds nothing.
foreach(package benchmark CLI11 doctest Eigen3 fmt nlohmann_json range-v3 rapidcheck)
  list(APPEND arguments -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
list(APPEND arguments -DFETCHCONTENT_FULLY_DISCONNECTED=ON)
if(NOT CUDA)
  list(APPEND arguments -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
endif()

set(consumer_arguments ${arguments} -DCONSUMER_CUDA=${CUDA})
if(CUDA AND NVCC)
  list(APPEND consumer_arguments "-DCMAKE_CUDA_COMPILER=${NVCC}" -DCMAKE_CUDA_ARCHITECTURES=90)
endif()
set(compiled OFF)
if(KIND STREQUAL "find_package" AND NOT CUDA)
  set(compiled ON)
endif()
list(APPEND consumer_arguments -DCONSUMER_COMPILED=${compiled})
if(KIND STREQUAL "find_package")
  run("${CMAKE_COMMAND}" -S "${ROUNDPIPE_SOURCE_DIR}" -B "${WORK_DIR}/roundpipe" ${arguments}
    -DROUNDPIPE_BUILD_TESTS=OFF -DROUNDPIPE_BUILD_EXAMPLES=OFF -DROUNDPIPE_BUILD_BENCH=OFF
    -DROUNDPIPE_ENABLE_CUDA=${CUDA} -DROUNDPIPE_BUILD_COMPILED=${compiled}
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
  if(compiled AND GENERATOR MATCHES "^(Ninja|Unix Makefiles)$")
    take_library("${WORK_DIR}/roundpipe")
  else()
    run("${CMAKE_COMMAND}" --build "${WORK_DIR}/roundpipe" --config Debug)
  endif()
  run("${CMAKE_COMMAND}" --install "${WORK_DIR}/roundpipe" --prefix "${WORK_DIR}/staging")
  file(RENAME "${WORK_DIR}/staging" "${WORK_DIR}/prefix") # an installed package may be moved
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
