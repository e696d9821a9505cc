# cmake [-DPROGRAM=<plan_pipeline>] -P plan_pipeline_adaptive.cmake
# plan_pipeline --global-batch prints what the library chooses, and refuses what does not fit: with
# the least device memory, which really does, where a GiB less is refused.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../support/program.cmake")
use_program(plan_pipeline plan_pipeline_adaptive)
set(problem --model-shape qwen3-1.7b --hardware h200 --devices 1 --context 1024 --global-batch 2)

# Runs the program with a device memory of `bytes`, and sets `status`, `out` and `err`.
function(run bytes)
  execute_process(COMMAND "${PROGRAM}" ${problem} --device-memory ${bytes} ${ARGN}
    WORKING_DIRECTORY "${WORK_DIR}" RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  foreach(name status out err)
    set(${name} "${${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

run(1GiB)
if(NOT status EQUAL 2 OR NOT err MATCHES "^plan_pipeline: the device budget of 1073741824 bytes is too \
small: [^\n]+; the smallest budget that works is ([0-9]+) bytes [^\n]+ scratch of stages [^\n]+\n$")
  message(FATAL_ERROR "1 GiB ended with ${status}:\n${out}${err}")
endif()
set(least ${CMAKE_MATCH_1})
run(${least})
foreach(part micro-batch rounds stages checkpoints saves buffering)
  if(NOT out MATCHES "\n  ${part} +[^;\n]+; [^\n]+\n")
    message(SEND_ERROR "no line says why of ${part}:\n${out}")
  endif()
endforeach()
if(NOT status EQUAL 0 OR NOT out MATCHES "forecast: [0-9.]+ s an iteration, [0-9]+ tokens/s, MFU ")
  message(SEND_ERROR "${least} bytes ended with ${status}:\n${out}${err}")
endif()
string(CONCAT arena "\narena of each device: planned ([0-9]+)\\.([0-9][0-9]) GiB, "
  "most live at once ([0-9]+)\\.([0-9][0-9]) GiB, ratio (1)\\.([0-9][0-9])\n")
if(NOT out MATCHES "${arena}")
  message(FATAL_ERROR "the arena is smaller than what is live in it, or twice as large:\n${out}")
endif()
set(planned ${CMAKE_MATCH_1}${CMAKE_MATCH_2}) # hundredths, rounded
set(live ${CMAKE_MATCH_3}${CMAKE_MATCH_4})
set(ratio ${CMAKE_MATCH_5}${CMAKE_MATCH_6})
math(EXPR least_of_ratio "(2 * ${ratio} - 1) * (2 * ${live} - 1)")
math(EXPR most_of_planned "200 * (2 * ${planned} + 1)")
math(EXPR least_of_planned "200 * (2 * ${planned} - 1)")
math(EXPR most_of_ratio "(2 * ${ratio} + 1) * (2 * ${live} + 1)")
if(planned LESS live OR least_of_ratio GREATER most_of_planned OR least_of_planned GREATER most_of_ratio)
  message(SEND_ERROR "the ratio is not that of what is planned and what is live:\n${out}")
endif()
# Nothing but the fused stage's saves is kept, and one round has all the chunks.
string(REGEX MATCH "\n  rounds +([0-9]+) of M_R = ([0-9]+) micro-batches;" found "${out}")
set(as_adaws "${CMAKE_MATCH_1} rounds? of ${CMAKE_MATCH_2} chunks?")
string(REGEX MATCH "\n  buffering +entries of parameters ([0-9]+), gradients ([0-9]+)," found "${out}")
string(APPEND as_adaws ", R_param ${CMAKE_MATCH_1}, R_act 0, R_grad ${CMAKE_MATCH_2}, A_save 0\\.000")
if(NOT out MATCHES "\n  as AdaWS +${as_adaws}\n")
  message(SEND_ERROR "no line says \"${as_adaws}\":\n${out}")
endif()
math(EXPR less "${least} - (1 << 30)")
run(${less})
if(NOT status EQUAL 2)
  message(SEND_ERROR "${less} bytes ended with ${status}:\n${out}${err}")
endif()

run(24GiB --rounds 2)
if(NOT status EQUAL 0 OR NOT out MATCHES "\n  micro-batch +1 rows[^\n]*\n  rounds +2 of M_R = 1 micro-batches;")
  message(SEND_ERROR "two rounds of two sequences ended with ${status}:\n${out}${err}")
endif()

# More than all could use: the frontier ends there.
run(139GiB --states declared --frontier frontier.svg)
file(READ "${WORK_DIR}/frontier.svg" picture)
if(NOT status EQUAL 0 OR NOT out MATCHES "\nfrontier\n +device +tokens/s"
    OR NOT picture MATCHES "^<svg .*</svg>\n$" OR NOT err MATCHES "planned for ")
  message(SEND_ERROR "the frontier ended with ${status}:\n${out}${err}")
endif()
