# Helpers for tests of programs' errors. use_refused_program(<name>) is use_program with a folder
# <name>_errors that holds empty folders in/ and out/, and
#   expect_refusal(<pattern> <argument>...)
# runs the program in WORK_DIR. The run must end with exit status 2, print nothing on stdout (unless
# PRINTS_PROGRESS is set) and one line "<name>: ..." on stderr that matches the pattern, and leave
# out/ empty. The function sets `refusal` to that line.
include("${CMAKE_CURRENT_LIST_DIR}/program.cmake")

macro(use_refused_program name)
  set(NAME ${name})
  use_program(${name} ${name}_errors)
  file(MAKE_DIRECTORY "${WORK_DIR}/in" "${WORK_DIR}/out")
endmacro()

function(expect_refusal pattern)
  execute_process(COMMAND "${PROGRAM}" ${ARGN} WORKING_DIRECTORY "${WORK_DIR}" TIMEOUT 60
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  list(JOIN ARGN " " command)
  set(command "${NAME} ${command}")
  if(NOT status EQUAL 2)
    message(SEND_ERROR "${command}\nended with ${status}, not 2:\n${out}${err}")
  elseif(NOT PRINTS_PROGRESS AND NOT out STREQUAL "")
    message(SEND_ERROR "${command}\nprinted:\n${out}")
  elseif(NOT err MATCHES "^${NAME}: [^\n]+\n$")
    message(SEND_ERROR "${command}\nwant one line on stderr, have:\n${err}")
  elseif(NOT err MATCHES "${pattern}")
    message(SEND_ERROR "${command}\nwant '${pattern}' in:\n${err}")
  endif()
  file(GLOB_RECURSE left LIST_DIRECTORIES TRUE "${WORK_DIR}/out/*")
  if(left)
    file(REMOVE_RECURSE ${left})
    message(SEND_ERROR "${command}\nleft ${left}")
  endif()
  set(refusal "${err}" PARENT_SCOPE)
endfunction()
