# cmake -DSOURCE_DIR=<root> -DPYTHON=<python3> [-DPROGRAM=<interop.tokenize_data>] -P tokenize_data.cmake
# What examples/tokenize_data.py writes, of texts, JSON lines and conversations, the library reads.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/python.cmake")
use_python(tokenizers jinja2)
if(NOT PROGRAM)
  set(PROGRAM "${CMAKE_CURRENT_BINARY_DIR}/interop.tokenize_data")
endif()
run_in_work_dir("${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/tokenize_data.py"
  "${SOURCE_DIR}/examples/tokenize_data.py" "${PROGRAM}")
