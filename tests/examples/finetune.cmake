# cmake -DSOURCE_DIR=<root> [-DPROGRAM=<finetune>] -P finetune.cmake
# finetune from a folder to a folder: copies, resumes bit for bit, stops at a signal with a snapshot,
# and carries over what it does not know.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../support/program.cmake")
use_program(finetune finetune)
cmake_path(REPLACE_FILENAME PROGRAM make_tiny_checkpoint OUTPUT_VARIABLE make)
cmake_path(REPLACE_FILENAME PROGRAM generate OUTPUT_VARIABLE generate)

# Runs a command in WORK_DIR. Sets `out` to what it prints.
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK_DIR}" TIMEOUT 120
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

# Trains, and sets `report` to the report.
function(train)
  run("${PROGRAM}" --model tiny --data docs.tokens --quiet --context 32 --batch 8 --lr 1e-3
    --json report.json ${ARGN})
  if(NOT out STREQUAL "")
    message(SEND_ERROR "--quiet prints ${out}")
  endif()
  file(READ "${WORK_DIR}/report.json" report)
  set(report "${report}" PARENT_SCOPE)
endfunction()

# Whether two files of WORK_DIR are equal, or differ.
function(compare relation a b)
  file(SHA256 "${WORK_DIR}/${a}" hash_a)
  file(SHA256 "${WORK_DIR}/${b}" hash_b)
  if(relation STREQUAL "equal" AND NOT hash_a STREQUAL hash_b)
    message(SEND_ERROR "${a} and ${b} differ")
  elseif(relation STREQUAL "different" AND hash_a STREQUAL hash_b)
    message(SEND_ERROR "${a} and ${b} are equal")
  endif()
endfunction()

run("${make}" --output tiny --hidden 32 --context 64 --text "${SOURCE_DIR}/docs/00_quickstart.md"
  --tokens docs.tokens)
file(WRITE "${WORK_DIR}/tiny/generation_config.json" "{\"max_length\": 9}\n")

# --steps 0 evaluates and copies, whatever the type that the devices compute in.
train(--steps 0 --output copy --precision bf16)
compare(equal tiny/model.safetensors copy/model.safetensors)
foreach(file config.json tokenizer.json generation_config.json)
  compare(equal tiny/${file} copy/${file})
endforeach()
string(JSON losses LENGTH "${report}" losses)
string(JSON loss GET "${report}" evaluation_loss)
if(NOT losses EQUAL 0 OR loss LESS 5.5 OR loss GREATER 5.6)
  message(SEND_ERROR "--steps 0 reports\n${report}") # ln 256 is 5.545
endif()

# 20 steps in one go are 7, and 13 on other devices. `first` are the options of the first 7.
function(compare_resumed name weights first)
  train(--steps 20 --output ${name}_20 --micro-batches 4 ${ARGN})
  set(whole "${report}")
  train(${first} --output ${name} --micro-batches 4 ${ARGN})
  train(--steps 20 --resume --output ${name} --devices 3 --device-memory 4MiB ${ARGN})
  compare(equal ${name}_20/${weights} ${name}/${weights})
  compare(equal ${name}_20/loss.csv ${name}/loss.csv)
  foreach(step RANGE 12)
    math(EXPR at "${step} + 7")
    string(JSON wanted GET "${whole}" losses ${at})
    string(JSON found GET "${report}" losses ${step})
    if(NOT found STREQUAL wanted)
      message(SEND_ERROR "${name}: loss ${at} is ${found}, without a break ${wanted}")
    endif()
  endforeach()
  foreach(key evaluation_loss device_bytes_peak host_bytes_peak tokens_per_second)
    string(JSON value GET "${whole}" ${key})
    if(NOT value GREATER 0)
      message(SEND_ERROR "${name}: ${key} is ${value}")
    endif()
  endforeach()
endfunction()
compare_resumed(full model.safetensors "--steps;20;--stop-after;7"
  --dropout 0.1 --schedule cosine --warmup 3)
compare_resumed(sync model.safetensors "--steps;7;--save-every;7"
  --sync --precision bf16 --master single)
compare_resumed(lora adapter_model.safetensors "--steps;7;--save-every;4"
  --lora 4 --lora-dropout 0.1)
compare(different full/model.safetensors tiny/model.safetensors)
compare(different full/model.safetensors sync/model.safetensors)
compare(equal full/generation_config.json tiny/generation_config.json)

# Merged adapters are those beside the base; generate reads both.
train(--steps 0 --adapter lora --merge --output merged)
string(JSON merged GET "${report}" evaluation_loss)
train(--steps 0 --model merged --output merged_copy)
string(JSON alone GET "${report}" evaluation_loss)
string(SUBSTRING "${merged}" 0 7 merged)
string(SUBSTRING "${alone}" 0 7 alone)
if(NOT merged STREQUAL alone)
  message(SEND_ERROR "adapters evaluate to ${merged}, merged to ${alone}")
endif()
run("${generate}" --model tiny --adapter lora --prompt-ids 35,32 --tokens 8)
set(wanted "${out}")
run("${generate}" --model merged --prompt-ids 35,32 --tokens 8)
if(NOT out STREQUAL wanted OR NOT out MATCHES "^35,32(,[0-9]+)+\n$")
  message(SEND_ERROR "generate prints ${wanted} of adapters, ${out} of merged weights")
endif()


# A signal ends the training with a snapshot, and status 0.
file(WRITE "${WORK_DIR}/stop.sh" [=[
signal=$1
shift
"$@" &
until ls $signal/snapshots/step-* >/dev/null 2>&1 || ! kill -0 $! 2>/dev/null; do :; done
kill -$signal $!
wait $!
]=])
foreach(signal INT TERM)
  run(sh stop.sh ${signal} "${PROGRAM}" --model tiny --data docs.tokens --context 32 --batch 8
    --quiet --steps 1000000 --save-every 3 --output ${signal})
  if(EXISTS "${WORK_DIR}/${signal}/model.safetensors" OR
      NOT EXISTS "${WORK_DIR}/${signal}/loss.svg")
    message(SEND_ERROR "a training that SIG${signal} ended left weights, or no curve")
  endif()
  file(GLOB snapshots "${WORK_DIR}/${signal}/snapshots/step-*")
  list(SORT snapshots)
  list(POP_BACK snapshots newest)
  string(REGEX REPLACE "^.*step-0*" "" step "${newest}")
  math(EXPR steps "${step} + 2")
  train(--resume --steps ${steps} --output ${signal})
  string(JSON first GET "${report}" first_step)
  if(NOT first EQUAL step)
    message(SEND_ERROR "the training goes on at ${first}, not at ${step}")
  endif()
endforeach()
