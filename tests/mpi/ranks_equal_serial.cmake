# cmake -DPROGRAM=<mpi_ranks> -DMPIEXEC=<mpirun> -DFLAG=<-n> -DNAME=ranks_equal_serial \
#   -P ranks_equal_serial.cmake
# Trainings of 2 to 4 processes end with the bits of one process, and so does the program of
# docs/11_several_hosts.md.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()

foreach(ranks RANGE 2 4)
  run(${ranks} 8)
  string(REGEX MATCHALL "rank [0-9] of ${ranks}: 8 trainings equal" equal "${out}")
  list(LENGTH equal count)
  if(NOT status EQUAL 0 OR NOT count EQUAL ranks)
    message(SEND_ERROR "${ranks} ranks end with ${status}:\n${out}")
  endif()
endforeach()

run(1)
set(alone "${out}")
if(NOT status EQUAL 0 OR NOT alone MATCHES "^loss .*, weights [0-9a-f]+\n$")
  message(SEND_ERROR "alone the page's program ends with ${status}:\n${alone}")
endif()
foreach(ranks 2 3)
  run(${ranks})
  if(NOT status EQUAL 0 OR NOT out STREQUAL alone)
    message(SEND_ERROR "with ${ranks} ranks the page's program ends with ${status}:\n${out}alone:\n${alone}")
  endif()
endforeach()
