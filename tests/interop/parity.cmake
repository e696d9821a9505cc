# cmake -DSOURCE_DIR=<root> -DPYTHON=<python3> [-DPROGRAM=<interop.parity>] -P parity.cmake
# Compares our models with Hugging Face transformers on random tiny checkpoints: see parity.py.
cmake_minimum_required(VERSION 3.25)
# adapters.cmake includes this with another script, which needs peft, too.
if(NOT script)
  set(script parity.py)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/../support/python.cmake")
use_python(torch transformers safetensors ${needs_also})
execute_process(COMMAND "${PYTHON}" -c
  "import sys, transformers as t; v = t.__version__; print(v); sys.exit(int(v.split('.')[0]) < 5)"
  RESULT_VARIABLE too_old OUTPUT_VARIABLE version ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT too_old EQUAL 0)
  message(STATUS "skipped: transformers is ${version}; its configurations are those of version 5")
  return()
endif()
if(NOT PROGRAM)
  set(PROGRAM "${CMAKE_CURRENT_BINARY_DIR}/interop.parity")
endif()
run_in_work_dir("${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/${script}"
  --program "${PROGRAM}" --folder "${WORK_DIR}")
