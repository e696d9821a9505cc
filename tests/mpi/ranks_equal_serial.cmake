# cmake -DPROGRAM=<mpi.ranks_equal_serial> -DMPIEXEC=<mpirun> -DFLAG=<-n> -P ranks_equal_serial.cmake
# Trainings of 2 to 4 processes end with the bits of one process.
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
