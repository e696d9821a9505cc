# cmake -DSOURCE_DIR=<root> -DPYTHON=<python3> -P sheet.cmake
# bench/sheet.sh and its tables, with programs that print what ours would: see sheet.py.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/python.cmake")
use_python(json)
run_in_work_dir("${PYTHON}" -B "${CMAKE_CURRENT_LIST_DIR}/sheet.py"
  --source "${SOURCE_DIR}" --folder "${WORK_DIR}")
