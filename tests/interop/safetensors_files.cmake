# cmake -DSOURCE_DIR=<root> -DPYTHON=<python3> [-DPROGRAM=<interop.safetensors_files>]
#   -P safetensors_files.cmake
# Compares our files with those of the safetensors library, both ways: each reads what the other
# wrote, and of the same tensors both write the same bytes.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/python.cmake")
use_python(numpy safetensors)
if(NOT PROGRAM)
  set(PROGRAM "${CMAKE_CURRENT_BINARY_DIR}/interop.safetensors_files")
endif()
set(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/safetensors_files.py")
run_in_work_dir("${PROGRAM}" write ours)
run_in_work_dir("${PYTHON}" "${SCRIPT}" check ours)
run_in_work_dir("${PYTHON}" "${SCRIPT}" write theirs)
run_in_work_dir("${PROGRAM}" check theirs)
foreach(name single.safetensors sharded/model-00001-of-00002.safetensors
    sharded/model-00002-of-00002.safetensors sharded/model.safetensors.index.json)
  file(SHA256 "${WORK_DIR}/ours/${name}" ours)
  file(SHA256 "${WORK_DIR}/theirs/${name}" theirs)
  if(NOT ours STREQUAL theirs)
    message(SEND_ERROR "${name} differs from what the safetensors library writes")
  endif()
endforeach()
# What the library refuses of damaged files, we refuse, and of those that it reads, we read all but
# those whose surplus we would lose.
run_in_work_dir("${PYTHON}" "${SCRIPT}" damage damaged)
run_in_work_dir("${PROGRAM}" judge damaged)
