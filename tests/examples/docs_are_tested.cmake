# cmake -DSOURCE_DIR=<root> -P docs_are_tested.cmake
# Checks that every C++ block of these pages stands in a file that is compiled and run. It ignores
# indentation, so a block can come from inside a function. The blocks of docs/09_own_project.md are
# compiled and run by package.docs.*.
cmake_minimum_required(VERSION 3.25)

function(read_flat file out)
  file(READ "${SOURCE_DIR}/${file}" text)
  string(REGEX REPLACE "\n +" "\n" text "\n${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(check_page page) # arguments: the files that may hold its code
  set(sources)
  foreach(file IN LISTS ARGN)
    read_flat("${file}" text)
    string(APPEND sources "${text}")
  endforeach()
  read_flat("${page}" rest)
  set(count 0)
  while(TRUE)
    string(FIND "${rest}" "\n```cpp\n" begin)
    if(begin EQUAL -1)
      break()
    endif()
    math(EXPR begin "${begin} + 7") # the block, with the line break before it
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n```\n" end)
    if(end EQUAL -1)
      message(FATAL_ERROR "${page}: a block of C++ has no end")
    endif()
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" 0 ${end} block)
    string(FIND "${sources}" "${block}" found)
    if(found EQUAL -1)
      message(SEND_ERROR "${page}: none of ${ARGN} holds this block:${block}")
    endif()
    string(SUBSTRING "${rest}" ${end} -1 rest)
    math(EXPR count "${count} + 1")
  endwhile()
  if(count EQUAL 0)
    message(SEND_ERROR "${page} holds no C++")
  endif()
  message(STATUS "${page}: ${count} blocks")
endfunction()

check_page(docs/00_quickstart.md tests/examples/docs/docs.test.cpp
  tests/examples/docs/docs_accumulation.test.cpp examples/quickstart.cpp)
check_page(docs/01_layers.md tests/examples/docs/docs.test.cpp)
check_page(docs/02_schedules.md tests/examples/docs/docs_schedules.test.cpp)
check_page(docs/03_transfers.md tests/examples/docs/docs.test.cpp)
check_page(docs/04_event_protocol.md tests/examples/docs/docs.test.cpp)
check_page(docs/05_partitioner.md tests/examples/docs/docs_partitioner.test.cpp)
check_page(docs/07_own_backend.md
  tests/examples/docs/docs.test.cpp tests/cuda/docs.test.cpp examples/own_kernel.cu)
check_page(docs/08_optimizers.md tests/examples/docs/docs_optimizers.test.cpp)
check_page(docs/10_real_models.md tests/examples/docs/docs_real_models.test.cpp)
check_page(docs/11_several_hosts.md tests/mpi/ranks_equal_serial.cpp
  tests/unit/runtime/automatic.test.cpp)
