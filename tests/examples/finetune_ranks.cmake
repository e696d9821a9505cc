# cmake [-DPROGRAM=<finetune>] -DMPIEXEC=<mpirun> -DFLAG=<-n> -P finetune_ranks.cmake
# finetune under mpirun: ranks share the batch and write what one process with the rounds of all
# writes, bit for bit; a snapshot resumes on another number of ranks; rank 0 alone prints.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/../support/program.cmake")
use_program(finetune finetune_ranks)
include("${CMAKE_CURRENT_LIST_DIR}/../support/mpi.cmake")
use_mpi()
cmake_path(REPLACE_FILENAME PROGRAM make_tiny_checkpoint OUTPUT_VARIABLE make)
execute_process(COMMAND "${make}" --output "${WORK_DIR}/tiny" --hidden 32 --context 64
  --text "${SOURCE_DIR}/docs/00_quickstart.md" --tokens "${WORK_DIR}/docs.tokens"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

# Trains into a folder.
function(train ranks folder)
  run(${ranks} --model ${WORK_DIR}/tiny --data ${WORK_DIR}/docs.tokens --quiet --context 32 --batch 8
    --lr 1e-3 --steps 6 --backend host --micro-batches 1 --output ${WORK_DIR}/${folder} ${ARGN})
  if(NOT status EQUAL 0 OR NOT out STREQUAL "")
    message(FATAL_ERROR "${ranks} ranks, ${folder}: ended with ${status}:\n${out}")
  endif()
endfunction()

function(compare a b)
  foreach(file ${ARGN} loss.csv)
    file(SHA256 "${WORK_DIR}/${a}/${file}" hash_a)
    file(SHA256 "${WORK_DIR}/${b}/${file}" hash_b)
    if(NOT hash_a STREQUAL hash_b)
      message(SEND_ERROR "${a}/${file} and ${b}/${file} differ")
    endif()
  endforeach()
endfunction()

train(1 alone --rounds 4 --eval-every 2)
train(2 two --rounds 2 --eval-every 2)
compare(alone two model.safetensors)
train(4 resumed --rounds 1 --eval-every 2 --stop-after 3)
run(2 --model ${WORK_DIR}/tiny --data ${WORK_DIR}/docs.tokens --context 32 --batch 8 --lr 1e-3 --steps 6
  --backend host --eval-every 2 --output ${WORK_DIR}/resumed --resume)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "2 ranks, resumed: ended with ${status}:\n${out}")
endif()
compare(alone resumed model.safetensors)

# Without a cut ranks choose one together, and rank 0 reports it.
run(2 --model ${WORK_DIR}/tiny --data ${WORK_DIR}/docs.tokens --quiet --context 32 --batch 8 --steps 1
  --backend host --output ${WORK_DIR}/chosen --json ${WORK_DIR}/chosen.json)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "2 ranks that choose: ended with ${status}:\n${out}")
endif()
file(READ "${WORK_DIR}/chosen.json" report)
string(JSON chosen GET "${report}" automatic)
if(NOT chosen MATCHES "^([0-9]+) rounds? of ([0-9]+) micro-batches of ([0-9]+) rows in ")
  message(SEND_ERROR "2 ranks that choose: ${chosen}")
endif()
math(EXPR rows "${CMAKE_MATCH_1} * ${CMAKE_MATCH_2} * ${CMAKE_MATCH_3}")
if(NOT rows EQUAL 4)
  message(SEND_ERROR "2 ranks that choose for 8 rows: ${chosen}")
endif()

# The output is rounded, and the evaluation sees it so.
train(1 lora_alone --rounds 4 --lora 2 --precision fp32)
train(2 lora_two --rounds 2 --lora 2 --precision fp32)
compare(lora_alone lora_two adapter_model.safetensors)
train(1 bf16_alone --rounds 4 --precision fp32 --output-type bf16)
train(2 bf16_two --rounds 2 --precision fp32 --output-type bf16)
compare(bf16_alone bf16_two model.safetensors)

run(3 --model ${WORK_DIR}/tiny --data ${WORK_DIR}/docs.tokens --steps 1 --batch 8
  --output ${WORK_DIR}/refused)
if(status EQUAL 0 OR NOT out MATCHES "--micro-batches times --rounds times the number of ranks, 3, do not divide")
  message(SEND_ERROR "3 ranks for 8 rows ended with ${status}:\n${out}")
endif()
