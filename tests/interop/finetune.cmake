# cmake -DSOURCE_DIR=<root> -DPYTHON=<python3> [-DPROGRAMS=<folder>] -P finetune.cmake
# What examples/finetune and examples/generate make of tiny checkpoints, transformers and peft open,
# with the same losses and the same tokens: see finetune.py.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/python.cmake")
use_python(torch transformers peft safetensors)
if(NOT PROGRAMS)
  set(PROGRAMS "${CMAKE_CURRENT_BINARY_DIR}/../examples")
endif()
if(NOT EXISTS "${PROGRAMS}/finetune")
  message(STATUS "skipped: there is no ${PROGRAMS}/finetune")
  return()
endif()
run_in_work_dir("${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/finetune.py"
  --programs "${PROGRAMS}" --folder "${WORK_DIR}")
