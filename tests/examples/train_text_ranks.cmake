# cmake [-DPROGRAM=<train_text>] -DMPIEXEC=<mpirun> -DFLAG=<-n> -P train_text_ranks.cmake
# train_text under mpirun: ranks share the batch and end with the weights and losses of one process
# with the rounds of all; rank 0 alone prints and writes; what ranks cannot do is refused.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/program.cmake")
use_program(train_text train_text_ranks)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()
string(REPEAT "It was the best of times, it was the worst of times; " 60 text)
file(WRITE "${WORK_DIR}/text" "${text}")
set(training --data ${WORK_DIR}/text --quiet --seconds 0 --steps 5 --hidden 16 --heads 2 --kv-heads 1
  --context 16 --layers 2 --batch 12 --micro-batches 2 --devices 2)

# Sets `report` to the report of a run by so many ranks.
function(train ranks)
  set(json "${WORK_DIR}/report.json")
  file(REMOVE "${json}")
  run(${ranks} ${training} --json ${json} ${ARGN})
  if(NOT status EQUAL 0 OR NOT out STREQUAL "")
    message(FATAL_ERROR "${ranks} ranks, ${ARGN}: ended with ${status}:\n${out}")
  endif()
  file(READ "${json}" report)
  set(report "${report}" PARENT_SCOPE)
endfunction()

# The report has the results of the one in `alone`; `what` names it.
function(expect_alike what)
  foreach(key losses weights_digest validation_nats_per_byte)
    string(JSON wanted GET "${alone}" ${key})
    string(JSON found GET "${report}" ${key})
    if(NOT wanted STREQUAL found)
      message(SEND_ERROR "${what}: ${key} is ${found}, alone ${wanted}")
    endif()
  endforeach()
endfunction()

foreach(mix "" "--dropout;0.1" "--precision;bf16;--master;bf16" "--sync;--clip;0.01")
  train(1 --rounds 6 ${mix})
  set(alone "${report}")
  foreach(ranks 2 3)
    math(EXPR rounds "6 / ${ranks}")
    train(${ranks} --rounds ${rounds} ${mix})
    expect_alike("${mix}, ${ranks} ranks")
  endforeach()
endforeach()

# Ranks that are not alike: other numbers of rounds, of devices, and other budgets.
train(1 --rounds 6)
set(alone "${report}")
set(json ${WORK_DIR}/report.json)
foreach(mix "--deal;5,1" "--deal;speed")
  run(1 ${training} --rounds 3 ${mix} --devices 1 --host-memory 24MiB --json ${json}
    : ${FLAG} 1 ${PROGRAM} ${training} --rounds 3 ${mix} --devices 3 --host-memory 8MiB)
  if(NOT status EQUAL 0 OR NOT out STREQUAL "")
    message(FATAL_ERROR "${mix} ended with ${status}:\n${out}")
  endif()
  file(READ "${json}" report)
  expect_alike("${mix}")
endforeach()

# Ranks choose a cut together: that of the batch of all, and the same on each.
train(2 --auto --rounds 3)
string(JSON chosen GET "${report}" automatic)
if(NOT chosen MATCHES "^3 rounds of 2 micro-batches of 1 rows in ")
  message(SEND_ERROR "2 ranks, --auto: ${chosen}")
endif()
expect_alike("--auto, 2 ranks")

foreach(refused "--rounds;2" "--serial" "--cost-file;costs")
  run(2 ${training} ${refused})
  if(status EQUAL 0 OR NOT out MATCHES "--micro-batches times --rounds times the number of ranks|are for one process")
    message(SEND_ERROR "2 ranks, ${refused}: ended with ${status}:\n${out}")
  endif()
endforeach()

# The time of rank 0 ends all.
run(2 ${training} --rounds 3 --steps 1000000 --seconds 1)
if(NOT status EQUAL 0)
  message(SEND_ERROR "2 ranks for a second: ended with ${status}:\n${out}")
endif()
