# Installs the headers and a package for find_package(roundpipe CONFIG). The CUDA target, the MPI
# target and the NCCL target have export files of their own, so a machine without the CUDA Toolkit, MPI
# or NCCL can use the package too. So has the compiled library, which is installed on request.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_dir ${CMAKE_INSTALL_LIBDIR}/cmake/roundpipe)

install(TARGETS roundpipe EXPORT roundpipeTargets 
  FILE_SET HEADERS FILE_SET extra_headers FILE_SET definitions)
install(EXPORT roundpipeTargets NAMESPACE roundpipe:: DESTINATION ${_dir})
if(ROUNDPIPE_BUILD_COMPILED)
  install(TARGETS roundpipe_compiled EXPORT roundpipeCompiledTargets)
  install(EXPORT roundpipeCompiledTargets NAMESPACE roundpipe:: DESTINATION ${_dir})
endif()
if(TARGET roundpipe_cuda)
  install(TARGETS roundpipe_cuda EXPORT roundpipeCudaTargets FILE_SET HEADERS)
  install(EXPORT roundpipeCudaTargets NAMESPACE roundpipe:: DESTINATION ${_dir})
endif()
if(TARGET roundpipe_mpi)
  install(TARGETS roundpipe_mpi EXPORT roundpipeMpiTargets FILE_SET HEADERS)
  install(EXPORT roundpipeMpiTargets NAMESPACE roundpipe:: DESTINATION ${_dir})
endif()
if(TARGET roundpipe_nccl)
  install(TARGETS roundpipe_nccl EXPORT roundpipeNcclTargets FILE_SET HEADERS)
  install(EXPORT roundpipeNcclTargets NAMESPACE roundpipe:: DESTINATION ${_dir})
endif()

configure_package_config_file(cmake/roundpipeConfig.cmake.in roundpipeConfig.cmake
  INSTALL_DESTINATION ${_dir})
# Before 1.0 a minor version may break its users.
set(_independent ARCH_INDEPENDENT)
if(ROUNDPIPE_BUILD_COMPILED)
  set(_independent)
endif()
write_basic_package_version_file(roundpipeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ${_independent})
install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/roundpipeConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/roundpipeConfigVersion.cmake
    cmake/RoundpipeCudnn.cmake
    cmake/RoundpipeMpi.cmake
    cmake/RoundpipeNccl.cmake
  DESTINATION ${_dir})
