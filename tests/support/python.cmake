include("${CMAKE_CURRENT_LIST_DIR}/program.cmake")

# use_python(<module>...) skips the test unless PYTHON, an interpreter, has all modules. Sets
#   WORK_DIR  to a folder of the test's name in the current folder, which is then empty
macro(use_python)
  if(NOT PYTHON)
    message(STATUS "skipped: CMake found no python3")
    return() # in a macro, return() returns from the caller
  endif()
  string(REPLACE ";" ", " modules "${ARGN}")
  execute_process(COMMAND "${PYTHON}" -c "import ${modules}"
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    message(STATUS "skipped: ${PYTHON} has not all of ${modules}")
    return()
  endif()
  get_filename_component(WORK_DIR "${CMAKE_SCRIPT_MODE_FILE}" NAME_WE)
  set(WORK_DIR "${CMAKE_CURRENT_BINARY_DIR}/interop/${WORK_DIR}")
  file(REMOVE_RECURSE "${WORK_DIR}")
  file(MAKE_DIRECTORY "${WORK_DIR}")
endmacro()
