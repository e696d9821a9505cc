# cmake [-DPROGRAM=<train_text>] -P train_text_errors.cmake
# Bad input ends train_text with exit status 2 and one line on stderr that names the mistake, and
# leaves no file behind.
cmake_minimum_required(VERSION 3.25)

set(PRINTS_PROGRESS ON)
include("${CMAKE_CURRENT_LIST_DIR}/../support/refusals.cmake")
use_refused_program(train_text)
file(MAKE_DIRECTORY "${WORK_DIR}/in/nothing")
string(REPEAT "All happy families are alike. " 100 text)
file(WRITE "${WORK_DIR}/in/text" "${text}")
file(WRITE "${WORK_DIR}/in/empty" "")
file(WRITE "${WORK_DIR}/in/short" "Too few bytes.")

# The first options of all runs. All --data options count; of other options the last one counts.
set(sizes --layers 2 --hidden 16 --heads 2 --kv-heads 1 --context 16 --batch 4
  --micro-batches 2 --steps 3 --devices 2)
set(small --data in/text ${sizes})
set(outputs --json out/report.json --trace out/trace.json)

function(expect_small_refusal pattern)
  expect_refusal("${pattern}" ${small} ${outputs} ${ARGN})
endfunction()

# The text
expect_small_refusal("cannot read 'in/missing'" --data in/missing)
expect_small_refusal("'in/empty' is empty" --data in/empty)
expect_small_refusal("'in/nothing' holds no text" --data in/nothing)
expect_refusal("14 bytes, too few for the context: at least 34"
  ${sizes} ${outputs} --data in/short)
expect_small_refusal("3000 bytes, too few" --context 1500)
# Root reads everything.
execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT user STREQUAL "0")
  file(WRITE "${WORK_DIR}/in/secret" "${text}")
  file(CHMOD "${WORK_DIR}/in/secret" PERMISSIONS OWNER_WRITE)
  expect_small_refusal("cannot read 'in/secret'" --data in/secret)
endif()

# The parser's own errors
expect_small_refusal("--unheard" --unheard)
expect_small_refusal("--steps" --steps many)
expect_small_refusal("--layers" --layers)
expect_small_refusal("--precision.*fp8" --precision fp8)
expect_small_refusal("--optimizer.*lion" --optimizer lion)
expect_small_refusal("--help" --unheard)

# Sizes
foreach(size layers hidden heads kv-heads context batch micro-batches rounds steps devices)
  expect_small_refusal("--${size} is 0" --${size} 0)
  expect_small_refusal("--${size} is -3" --${size} -3)
endforeach()
expect_small_refusal("--hidden is 16, which --heads, 3, do not divide" --heads 3)
expect_small_refusal("--heads is 4, which --kv-heads, 3, do not divide" --heads 4 --kv-heads 3)
expect_small_refusal("--batch is 4, which .* 3, do not divide" --micro-batches 3)
expect_small_refusal("--batch is 4, which .* 6, do not divide" --rounds 3)
expect_small_refusal("--lr" --lr -1)
expect_small_refusal("--dropout" --dropout 1.5)
expect_small_refusal("--seconds" --seconds -1)
expect_small_refusal("--link-gbps" --link-gbps -1)
expect_small_refusal("--device-memory: '1 parsec'" --device-memory "1 parsec")
expect_small_refusal("--device-memory" --device-memory 0)
expect_small_refusal("--gradient-buffers is 3, but must be 1 or 2" --gradient-buffers 3)
expect_small_refusal("--optimizer-threads is -1" --optimizer-threads -1)

# Types and copies that do not go together
expect_small_refusal("--master.*triple" --master triple)
expect_small_refusal("--master bf16 .*needs --precision bf16, not fp32" --master bf16)
expect_small_refusal("--precision bf16, not fp16" --master bf16 --precision fp16 --serial)
expect_small_refusal("--loss-scale is for --precision fp16" --loss-scale 1024)
expect_small_refusal("--loss-scale must be .* at least 1" --precision fp16 --loss-scale 0)

# The plan: the layer that needs most, its bytes, and a budget that would do
expect_small_refusal("layer [0-9]+ \\(.+\\) alone needs .*bytes; the smallest budget that works is"
  --device-memory 8KiB)

# What is chosen and measured
expect_small_refusal("--batch is 4, which .* 3, do not divide" --auto --micro-batches 3)
expect_small_refusal("--micro-batches is 0" --auto --micro-batches 0)
expect_small_refusal("--batch is 4, which .* 6, do not divide" --auto --rounds 3)
expect_refusal("--auto and --cost-file are for devices" ${small} --serial --auto)
expect_refusal("--auto and --cost-file are for devices" ${small} --serial --cost-file out/costs)
file(WRITE "${WORK_DIR}/in/costs" "roundpipe costs 1\nsome costs\n")
expect_small_refusal("in/costs is damaged: line 2 is 'some costs'" --cost-file in/costs)
expect_small_refusal("missing/costs cannot be written" --cost-file missing/costs)

# More GPUs than any machine has, so that all builds and machines refuse.
expect_small_refusal("CUDA" --backend cuda --devices 1000)
expect_refusal("--serial trains on the CPU" ${small} --backend cuda --serial)
expect_small_refusal("--link-gbps is for emulated" --backend cuda --link-gbps 1)
expect_small_refusal("--network nccl is for GPUs" --network nccl)

# Output
expect_refusal("cannot write 'missing/report.json'" ${small} --json missing/report.json)
expect_refusal("cannot write 'missing/trace.json'"
  ${small} --json out/report.json --trace missing/trace.json)
expect_refusal("cannot write 'in'" ${small} --json in)
expect_refusal("same file" ${small} --json out/a.json --trace out/a.json)
expect_refusal("--serial" ${small} --serial --trace out/trace.json)

# A loss that is not finite: the first steps still print their progress. No loss scale can help.
foreach(mode "" --serial)
  foreach(precision fp32 fp16)
    expect_refusal("loss .*step [0-9]+" ${small} --json out/report.json ${mode} --quiet
      --optimizer sgd --lr 1e30 --clip 0 --steps 50 --precision ${precision})
  endforeach()
endforeach()

# Help is not an error, and a good run leaves all its files, whole.
execute_process(COMMAND "${PROGRAM}" --help RESULT_VARIABLE status OUTPUT_VARIABLE out)
if(NOT status EQUAL 0 OR NOT out MATCHES "--micro-batches")
  message(SEND_ERROR "--help ended with ${status}:\n${out}")
endif()
execute_process(COMMAND "${PROGRAM}" ${small} ${outputs} WORKING_DIRECTORY "${WORK_DIR}"
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
file(GLOB left RELATIVE "${WORK_DIR}/out" "${WORK_DIR}/out/*")
if(NOT status EQUAL 0 OR NOT left STREQUAL "report.json;trace.json")
  message(SEND_ERROR "a good run ended with ${status} and left '${left}':\n${out}")
endif()
file(READ "${WORK_DIR}/out/trace.json" trace)
string(JSON events LENGTH "${trace}" traceEvents)
if(events LESS 10)
  message(SEND_ERROR "the trace has ${events} events")
endif()
