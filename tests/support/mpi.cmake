# cmake [-DPROGRAM=<a program> -DMPIEXEC=<mpirun> -DFLAG=<-n>] [-DNAME=<its first argument>] -P NAME.cmake
# For scripts with ranks: use_mpi() skips the test where CMake found no MPI, run(RANKS ARGUMENT...) runs
# the program by mpirun and sets `status` and `out`.
macro(use_mpi)
  if(NOT PROGRAM OR NOT MPIEXEC)
    message(STATUS "skipped: CMake found no MPI (Debian: libopenmpi-dev openmpi-bin)")
    return()
  endif()
  # As root, and with more ranks than CPUs: Open MPI 4 and 5 want to be told; MPICH does not ask.
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
  set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
  set(ENV{PRTE_MCA_rmaps_default_mapping_policy} ":oversubscribe")
endmacro()

function(run ranks)
  execute_process(COMMAND "${MPIEXEC}" ${FLAG} ${ranks} "${PROGRAM}" ${NAME} ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out TIMEOUT 120)
  set(status "${status}" PARENT_SCOPE)
  set(out "${out}" PARENT_SCOPE)
endfunction()
