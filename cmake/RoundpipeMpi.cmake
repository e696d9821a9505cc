# roundpipe_find_mpi(<AUTO|ON|OFF>) sets ROUNDPIPE_HAS_MPI. If CMake finds an MPI for C++ (Open MPI or
# MPICH; FindMPI reads MPI_HOME and MPI_CXX_COMPILER), it makes the target MPI::MPI_CXX.
#
# The library's build and the installed package both read this file.
macro(roundpipe_find_mpi enable)
  set(ROUNDPIPE_HAS_MPI OFF)
  if(NOT "${enable}" MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "ROUNDPIPE_ENABLE_MPI is '${enable}': must be AUTO, ON or OFF")
  endif()
  if(NOT "${enable}" STREQUAL "OFF")
    set(MPI_CXX_SKIP_MPICXX ON) # the C++ bindings that MPI has dropped
    find_package(MPI QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND)
      set(ROUNDPIPE_HAS_MPI ON)
    elseif("${enable}" STREQUAL "ON")
      message(FATAL_ERROR
        "ROUNDPIPE_ENABLE_MPI is ON, but no MPI for C++ was found. Name its compiler with -DMPI_CXX_COMPILER=..., or set ROUNDPIPE_ENABLE_MPI=OFF. (Debian: libopenmpi-dev openmpi-bin)")
    endif()
  endif()
endmacro()
