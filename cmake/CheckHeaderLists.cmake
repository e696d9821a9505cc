# cmake -DSOURCE_DIR=<root> -P CheckHeaderLists.cmake
# Every file under include/ is in exactly one list of RoundpipeHeaders.cmake, in the right one,
# and every header listed exists. The umbrella includes all of ROUNDPIPE_CORE_HEADERS.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/RoundpipeHeaders.cmake")

function(expect_folders list pattern)
  foreach(header IN LISTS ${list})
    if(NOT header MATCHES "^include/roundpipe/${pattern}$")
      message(SEND_ERROR "${header} does not belong in ${list}")
    endif()
  endforeach()
endfunction()
expect_folders(ROUNDPIPE_CORE_HEADERS
  "((core|concepts|plan|backend|optim|simulate|runtime)/.+|version|config|roundpipe)\\.hpp")
expect_folders(ROUNDPIPE_EXTRA_HEADERS "(io|trace|nn)/.+\\.hpp")
expect_folders(ROUNDPIPE_CUDA_HOST_HEADERS "cuda/.+\\.hpp")
expect_folders(ROUNDPIPE_CUDA_DEVICE_HEADERS "(cuda/.+|roundpipe_cuda)\\.cuh")

set(listed ${ROUNDPIPE_CORE_HEADERS} ${ROUNDPIPE_EXTRA_HEADERS}
  ${ROUNDPIPE_CUDA_HOST_HEADERS} ${ROUNDPIPE_CUDA_DEVICE_HEADERS})
set(seen)
foreach(header IN LISTS listed)
  if(header IN_LIST seen)
    message(SEND_ERROR "${header} is listed twice in RoundpipeHeaders.cmake")
  endif()
  list(APPEND seen ${header})
endforeach()

file(GLOB_RECURSE present RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/include/*")
foreach(header IN LISTS present)
  if(NOT header IN_LIST listed)
    message(SEND_ERROR "${header} is in no list of RoundpipeHeaders.cmake")
  endif()
endforeach()
foreach(header IN LISTS listed)
  if(NOT header IN_LIST present)
    message(SEND_ERROR "RoundpipeHeaders.cmake lists ${header}, which does not exist")
  endif()
endforeach()

file(READ "${SOURCE_DIR}/include/roundpipe/roundpipe.hpp" umbrella)
foreach(header IN LISTS ROUNDPIPE_CORE_HEADERS)
  string(REGEX REPLACE "^include/" "" header "${header}")
  string(FIND "${umbrella}" "#include <${header}>" position)
  if(position EQUAL -1 AND NOT header STREQUAL "roundpipe/roundpipe.hpp")
    message(SEND_ERROR "roundpipe.hpp does not include ${header}")
  endif()
endforeach()

list(LENGTH present count)
message(STATUS "${count} headers")
