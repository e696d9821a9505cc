# cmake -DSOURCE_DIR=<root> [-DPROGRAM=<train_text>] -P train_text_cuda.gpu.cmake
# README's model and batches, on GPUs and on the host: the losses of 50 steps agree, and so do the
# losses on held-out text. The host computes in fp32 and stores in the named type. At README's rate
# the first steps jump, and different roundings soon drift apart, on the host alone as well (fp32
# and bf16 by up to 1.5e-2). At a quarter of that rate losses still fall from 6.1 to 3.0 in 50
# steps, and all roundings to bf16 together move a loss by 1.1e-3, those to fp16 by 8e-5.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../support/program.cmake")
use_program(train_text train_text_cuda)
set(data --data ${SOURCE_DIR}/include ${SOURCE_DIR}/docs --quiet --seconds 0 --lr 0.0005)
set(steps 50)

execute_process(COMMAND "${PROGRAM}" ${data} --backend cuda --steps 1 ERROR_VARIABLE out)
if(out MATCHES "no CUDA (device|driver|backend)")
  message(STATUS "skipped: ${out}")
  return()
endif()

# Sets `report` to the report of a run with these options.
function(run)
  execute_process(
    COMMAND "${PROGRAM}" ${data} --json report.json --steps ${steps} ${ARGN}
    WORKING_DIRECTORY "${WORK_DIR}" RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0 OR NOT out STREQUAL "")
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "train_text ${command}\nended with ${status}:\n${out}")
  endif()
  file(READ "${WORK_DIR}/report.json" report)
  set(report "${report}" PARENT_SCOPE)
endfunction()

# Sets `name` to millionths of the positive decimal number `value`.
function(millionths name value)
  if(NOT value MATCHES "^([0-9]+)\\.?([0-9]*)$")
    message(FATAL_ERROR "'${value}' is not a positive decimal number")
  endif()
  string(SUBSTRING "${CMAKE_MATCH_2}000000" 0 6 fraction)
  math(EXPR result "${CMAKE_MATCH_1} * 1000000 + 1${fraction} - 1000000")
  set(${name} ${result} PARENT_SCOPE)
endfunction()

# Sets `name` to the distance of two positive decimal numbers, in millionths of the second.
function(distance name a b)
  millionths(a ${a})
  millionths(b ${b})
  math(EXPR result "(${a} - ${b}) * 1000000 / ${b}")
  string(REPLACE "-" "" result ${result})
  set(${name} ${result} PARENT_SCOPE)
endfunction()

# Trains with these options on both backends. No loss may differ from the host's by more than `most`
# millionths of it.
function(compare most)
  list(JOIN ARGN " " mix)
  run(--backend cuda ${ARGN})
  set(device "${report}")
  run(--backend host ${ARGN})
  set(furthest 0)
  set(furthest_step 0)
  math(EXPR last "${steps} - 1")
  foreach(i RANGE ${last})
    string(JSON found GET "${device}" losses ${i})
    string(JSON wanted GET "${report}" losses ${i})
    distance(far ${found} ${wanted})
    if(far GREATER furthest)
      set(furthest ${far})
      set(furthest_step ${i})
    endif()
  endforeach()
  string(JSON first GET "${report}" losses 0)
  string(JSON count LENGTH "${device}" losses)
  if(NOT count EQUAL steps OR NOT wanted LESS first)
    message(SEND_ERROR "${mix}: ${count} losses; the host's go from ${first} to ${wanted}")
  endif()
  string(JSON found GET "${device}" validation_nats_per_byte)
  string(JSON wanted GET "${report}" validation_nats_per_byte)
  distance(validation ${found} ${wanted})
  message(STATUS "${mix}: losses differ by at most ${furthest} millionths (step ${furthest_step}), "
    "losses on held-out text (${found}, host ${wanted}) by ${validation}")
  if(furthest GREATER most OR validation GREATER most)
    message(SEND_ERROR "${mix}: that is more than ${most} millionths")
  endif()
endfunction()

compare(100 --precision fp32)
compare(4000 --precision bf16)
compare(1000 --precision fp16 --untied)
