# cmake -DPROGRAM=<mpi_ranks> -DMPIEXEC=<mpirun> -DFLAG=<-n> -DNAME=resident_memory \
#   -P resident_memory.cmake
# Each of 1, 2 and 4 ranks takes the memory that its ledger lists.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()

foreach(ranks IN ITEMS 1 2 4)
  run(${ranks} 1024)
  message(STATUS "${out}")
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${ranks} ranks end with ${status}")
  endif()
endforeach()
