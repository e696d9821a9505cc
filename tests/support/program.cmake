# Helpers for tests of programs. use_program(<name> <folder>) sets
#   PROGRAM   to the program's file, unless the user has set it. CTest runs tests in build/tests and
#             finds the program from there; without it (a build without examples) the test is skipped
#   WORK_DIR  to <folder> in the current folder, which is then empty
macro(use_program name folder)
  if(NOT PROGRAM)
    set(PROGRAM "${CMAKE_CURRENT_BINARY_DIR}/../examples/${name}")
    if(NOT EXISTS "${PROGRAM}")
      message(STATUS "skipped: there is no ${PROGRAM}")
      return() # in a macro, return() returns from the caller
    endif()
  endif()
  set(WORK_DIR "${CMAKE_CURRENT_BINARY_DIR}/${folder}")
  file(REMOVE_RECURSE "${WORK_DIR}")
  file(MAKE_DIRECTORY "${WORK_DIR}")
endmacro()

# Runs a command in WORK_DIR, which must succeed. Prints its output if it does not.
function(run_in_work_dir)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK_DIR}"
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${out}")
  endif()
endfunction()
