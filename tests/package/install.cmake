# How the scripts of this folder run commands and install the library. They set BUILD_DIR (our own
# build), CXX, FLAGS, GENERATOR and ROUNDPIPE_SOURCE_DIR.

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

# Debug builds without debug information, which takes a third of their time, and without optimized
# kernels, which nobody launches.
set(install_arguments -G "${GENERATOR}" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=${CXX}"
  "-DCMAKE_CXX_FLAGS_DEBUG=${FLAGS}" "-DCMAKE_CUDA_FLAGS_DEBUG=--Ofast-compile max")
# Nothing but the standard library: searching for any of these fails or finds nothing.
foreach(package benchmark CLI11 doctest Eigen3 fmt MPI nlohmann_json range-v3 rapidcheck)
  list(APPEND install_arguments -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
list(APPEND install_arguments -DFETCHCONTENT_FULLY_DISCONNECTED=ON)

# install_library(<folder> <cuda> <compiled>): installs the library to <folder>/prefix
function(install_library folder cuda compiled)
  set(arguments ${install_arguments})
  if(NOT cuda)
    list(APPEND arguments -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
  endif()
  run("${CMAKE_COMMAND}" -S "${ROUNDPIPE_SOURCE_DIR}" -B "${folder}/roundpipe" ${arguments}
    -DROUNDPIPE_BUILD_TESTS=OFF -DROUNDPIPE_BUILD_EXAMPLES=OFF -DROUNDPIPE_BUILD_BENCH=OFF
    -DROUNDPIPE_ENABLE_CUDA=${cuda} -DROUNDPIPE_BUILD_COMPILED=${compiled}
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
  if(compiled AND GENERATOR MATCHES "^(Ninja|Unix Makefiles)$")
    take_library("${folder}/roundpipe")
  else()
    run("${CMAKE_COMMAND}" --build "${folder}/roundpipe" --config Debug)
  endif()
  run("${CMAKE_COMMAND}" --install "${folder}/roundpipe" --prefix "${folder}/staging")
  file(RENAME "${folder}/staging" "${folder}/prefix") # an installed package may be moved
endfunction()
