# cmake -DPROGRAM=<mpi_ranks> -DMPIEXEC=<mpirun> -DFLAG=<-n> -DNAME=kill_a_rank \
#   -P kill_a_rank.cmake
# A few kills of crash/kill_a_rank.sh; by hand with more.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()

execute_process(
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/../crash/kill_a_rank.sh" "${PROGRAM}" "${MPIEXEC}" 3
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(SEND_ERROR "ends with ${status}")
endif()
