# What tests of examples' errors have in common. Before it is included,
#   NAME             names the program
#   PROGRAM          is its file, if CTest does not run the test in build/tests
#   PRINTS_PROGRESS  if it is set, lets the program print to stdout before it fails
# It sets PROGRAM (empty in a build without examples) and WORK_DIR, a folder NAME_errors that holds
# empty folders in/ and out/, and defines
#   expect_refusal(<pattern> <argument>...)
# which runs the program in WORK_DIR and wants exit status 2, nothing on stdout, one line "NAME: ..."
# on stderr that matches the pattern, and nothing in out/. It sets `refusal` to that line.
if(NOT PROGRAM)
  set(PROGRAM "${CMAKE_CURRENT_BINARY_DIR}/../examples/${NAME}")
  if(NOT EXISTS "${PROGRAM}")
    message(STATUS "there is no ${PROGRAM}")
    set(PROGRAM)
  endif()
endif()
set(WORK_DIR "${CMAKE_CURRENT_BINARY_DIR}/${NAME}_errors")
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}/in" "${WORK_DIR}/out")

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
