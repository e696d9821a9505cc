# cmake -DPROGRAM=<mpi_ranks> -DMPIEXEC=<mpirun> -DFLAG=<-n> -DNAME=resident_memory \
#   -P resident_memory.cmake
# Each of 1, 2 and 4 ranks takes the memory that its ledger lists, also where one keeps more of the
# optimizer states than another.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()

foreach(case "1;1024" "2;1024" "4;1024" "3;1024;unequal")
  run(${case})
  message(STATUS "${out}")
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${case}: ends with ${status}")
  endif()
endforeach()
