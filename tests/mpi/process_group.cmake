# cmake -DPROGRAM=<mpi_ranks> -DMPIEXEC=<mpirun> -DFLAG=<-n> -DNAME=process_group \
#   -P process_group.cmake
# The conformance test of process groups, run by mpirun with 1 to 4 ranks; and what ends a rank ends
# all others soon, with its reason.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()

foreach(ranks RANGE 1 4)
  run(${ranks})
  string(REGEX MATCHALL "rank [0-9] of ${ranks} agrees" agrees "${out}")
  list(LENGTH agrees count)
  if(NOT status EQUAL 0 OR NOT count EQUAL ranks)
    message(SEND_ERROR "${ranks} ranks end with ${status}:\n${out}")
  endif()
endforeach()

foreach(how abort throw kill)
  string(TIMESTAMP begin "%s")
  run(3 ${how})
  string(TIMESTAMP end "%s")
  math(EXPR seconds "${end} - ${begin}")
  if(status EQUAL 0 OR seconds GREATER 10)
    message(SEND_ERROR "${how}: ends with ${status} after ${seconds} s:\n${out}")
  endif()
  if(NOT how STREQUAL "kill" AND NOT out MATCHES "rank [01]: rank 2 has ended the group: ")
    message(SEND_ERROR "${how}: the ranks that are left do not say who has ended them:\n${out}")
  endif()
endforeach()
