# cmake [-DPROGRAM=<plan_pipeline>] -P plan_pipeline_errors.cmake
# Bad input ends plan_pipeline with exit status 2 and one line on stderr that names the mistake. The
# program prints nothing else and leaves no file behind.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../support/refusals.cmake")
use_refused_program(plan_pipeline)

# A file of costs: other keys of the file, and its layers.
set(layer [["forward_ms": 3, "backward_ms": 6]])
function(write_costs name keys)
  list(JOIN ARGN "}, {" layers)
  file(WRITE "${WORK_DIR}/in/${name}" "{${keys} \"layers\": [{${layers}}]}")
endfunction()
set(eight)
foreach(i RANGE 1 8)
  list(APPEND eight "${layer}")
endforeach()
write_costs(good "" ${eight})
set(outputs --json out/plan.json --svg out/plan.svg --trace out/plan.trace)
set(schedules naive gpipe 1f1b interleaved-1f1b looped-bfs zb-h1 dualpipe roundpipe earliest-finish)

function(expect_good_refusal pattern)
  expect_refusal("${pattern}" --costs in/good ${outputs} ${ARGN})
endfunction()
function(expect_bad_file pattern text)
  file(WRITE "${WORK_DIR}/in/bad" "${text}")
  expect_refusal("${pattern}" --costs in/bad ${outputs})
endfunction()
function(expect_bad_layer pattern layer)
  expect_bad_file("in/bad: layer 1: .*${pattern}"
    "{\"layers\": [{\"forward_ms\": 1, \"backward_ms\": 2}, ${layer}]}")
endfunction()
function(expect_bad_key pattern keys)
  expect_bad_file("${pattern}"
    "{\"layers\": [{\"forward_ms\": 1, \"backward_ms\": 2}], ${keys}}")
endfunction()

# Files that cannot be read, and files that are not JSON
expect_refusal("give either --costs FILE or --model-shape" ${outputs})
expect_refusal("cannot read 'in/missing'" --costs in/missing ${outputs})
expect_refusal("cannot read 'in'" --costs in ${outputs})
execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT user STREQUAL "0") # root reads everything
  file(COPY_FILE "${WORK_DIR}/in/good" "${WORK_DIR}/in/secret")
  file(CHMOD "${WORK_DIR}/in/secret" PERMISSIONS OWNER_WRITE)
  expect_refusal("cannot read 'in/secret'" --costs in/secret ${outputs})
endif()
expect_bad_file("in/bad: parse error at line 1" "")
expect_bad_file("in/bad: parse error at line 3" "{\n\n \"layers\": [}")
expect_bad_file("in/bad: parse error" "{\"layers\": [{\"forward_ms\": NaN, \"backward_ms\": 1}]}")
expect_bad_file("in/bad: is not a JSON object" "[1, 2]")
expect_bad_file("in/bad: is not a JSON object" "null")
if(refusal MATCHES "json\\.exception")
  message(SEND_ERROR "an error exposes the JSON parser: ${refusal}")
endif()

# Layers
expect_bad_file("in/bad: has no 'layers'" "{}")
expect_bad_file("'layers' must be a list of at least one element" "{\"layers\": []}")
expect_bad_file("'layers' must be a list" "{\"layers\": {}}")
expect_bad_layer("is not a JSON object" "3")
expect_bad_layer("has no 'forward_ms'" "{\"backward_ms\": 1}")
expect_bad_layer("has no 'backward_ms'" "{\"forward_ms\": 1}")
expect_bad_layer("has a key \"fwd_ms\"" "{\"forward_ms\": 1, \"backward_ms\": 1, \"fwd_ms\": 1}")
foreach(key forward_ms backward_ms)
  set(other backward_ms)
  if(key STREQUAL other)
    set(other forward_ms)
  endif()
  foreach(value -1 -1e-9 1e16 true null "\"3\"" "[1]" "{}")
    expect_bad_layer("'${key}' is" "{\"${key}\": ${value}, \"${other}\": 1}")
  endforeach()
endforeach()
foreach(key recompute_ms optimizer_ms parameter_bytes gradient_bytes boundary_bytes saved_bytes
    workspace_bytes)
  foreach(value -1 1e16 "\"3\"")
    expect_bad_layer("'${key}' is" "{${layer}, \"${key}\": ${value}}")
  endforeach()
endforeach()
expect_bad_file("number overflow" "{\"layers\": [{\"forward_ms\": 1e999, \"backward_ms\": 1}]}")

# The machine
set(speeds [["up_gbps": 10, "down_gbps": 10]])
expect_bad_key("has a key \"communication\"" [["communication": 3]])
expect_bad_key("'communication_ms' is -1" [["communication_ms": -1]])
expect_bad_key("'dispatch_us' is -1" [["dispatch_us": -1]])
expect_bad_key("'communication_ms' and 'link'" "\"communication_ms\": 1, \"link\": {${speeds}}")
expect_bad_key("'link': is not a JSON object" [["link": 3]])
expect_bad_key("'link': has no 'down_gbps'" [["link": {"up_gbps": 1}]])
expect_bad_key("'link': 'up_gbps' is 0" [["link": {"up_gbps": 0, "down_gbps": 1}]])
expect_bad_key("'link': has a key \"mbps\"" "\"link\": {${speeds}, \"mbps\": 1}")
foreach(key latency_us root_gbps host_gbps both_ways_factor)
  expect_bad_key("'${key}' is -1" "\"link\": {${speeds}, \"${key}\": -1}")
endforeach()
foreach(factor 0 1.5)
  expect_bad_key("both ways" "\"link\": {${speeds}, \"both_ways_factor\": ${factor}}")
endforeach()
foreach(groups 3 "[]" "[0, 1]" "[[0], 1]" "[[-1]]" "[[0.5]]" "[[\"0\"]]" "[[99999999999]]")
  expect_bad_key("'groups' must be" "\"link\": {${speeds}, \"groups\": ${groups}}")
endforeach()
foreach(groups "[[0, 0]]" "[[0], [1, 0]]")
  expect_bad_key("device 0 more than once" "\"link\": {${speeds}, \"groups\": ${groups}}")
endforeach()
expect_bad_key("device 4, but there are 4" "\"link\": {${speeds}, \"groups\": [[4]]}")

# Shapes and hardware
expect_refusal("go together" --model-shape qwen3-1.7b ${outputs})
expect_good_refusal("go together" --hardware h100)
expect_good_refusal("either" --model-shape qwen3-1.7b --hardware h100)
expect_refusal("'gpt-9'.* qwen3-1.7b, llama3.1-8b, gpt-oss-20b, qwen3-32b, qwen3-235b-a22b"
  --model-shape gpt-9 --hardware h100 ${outputs})
expect_refusal("'tpu'.* a100, h100, h200, rtx4090, rtx5090"
  --model-shape qwen3-1.7b --hardware tpu ${outputs})
expect_refusal("cannot read 'in/no.json'"
  --model-shape qwen3-1.7b --hardware in/no.json ${outputs})
expect_refusal("in/good: has a key" --model-shape qwen3-1.7b --hardware in/good ${outputs})
foreach(size context micro-batch)
  foreach(value 0 -3 10000000000 many 1.5)
    expect_refusal("--${size}"
      --model-shape qwen3-1.7b --hardware h100 --${size} ${value} ${outputs})
  endforeach()
endforeach()
expect_refusal("2\\^63" --model-shape qwen3-1.7b --hardware h100 ${outputs}
  --context 1000000000 --micro-batch 1000000000)

# The library chooses: of the schedule, only the cut of the batch can be given
set(adaptive --model-shape qwen3-1.7b --hardware h100 --devices 1 --global-batch 4)
foreach(option micro-batches iterations stages-per-device)
  expect_refusal("--${option}.*--global-batch|--global-batch.*--${option}"
    ${adaptive} --${option} 2)
endforeach()
foreach(option micro-batch micro-batches-per-round rounds)
  expect_refusal("4 rows has no such cut" ${adaptive} --${option} 3)
  expect_refusal("--${option}" ${adaptive} --${option} 0)
endforeach()
expect_refusal("requires --global-batch" --costs in/good --rounds 2)
expect_refusal("excludes.*schedule|schedule.*excludes" ${adaptive} --schedule gpipe)
expect_refusal("excludes" ${adaptive} --json out/plan.json)
expect_refusal("excludes" --costs in/good --global-batch 4)
expect_refusal("requires --global-batch" --costs in/good --host-memory 4GiB)
expect_refusal("requires --global-batch" --costs in/good --frontier out/frontier.svg)
expect_refusal("--context must be at most 1e7" ${adaptive} --context 10000001)
expect_refusal("--states" ${adaptive} --states bf16)
expect_refusal("--host-memory: '1 parsec'" ${adaptive} --host-memory "1 parsec")
expect_refusal("must be more than 0 bytes" ${adaptive} --host-memory 0)
foreach(value 0 -3 1.5 many)
  expect_refusal("--global-batch is '${value}', but must be a number from 1 to"
    --model-shape qwen3-1.7b --hardware h100 --global-batch ${value})
endforeach()
expect_refusal("mixture of experts"
  --model-shape gpt-oss-20b --hardware h100 --global-batch 4 --frontier out/frontier.svg)
expect_refusal("cannot write" ${adaptive} --frontier no/frontier.svg)

# The parser's own errors
expect_good_refusal("--unheard" --unheard)
expect_good_refusal("extra" extra)
expect_good_refusal("--devices" --devices)
expect_good_refusal("--partition-by.*luck" --partition-by luck)
expect_good_refusal("--help" --unheard)

# Counts
foreach(count devices micro-batches micro-batches-per-round stages-per-device iterations
    forward-stages backward-stages)
  foreach(value 0 -3 1.5 many 1000001 99999999999999999999)
    expect_good_refusal("--${count} is '${value}', but must be a number from 1 to"
      --backward-stages 8 --${count} ${value})
  endforeach()
endforeach()
expect_good_refusal("too many to simulate" --micro-batches 100000 --iterations 100000)
expect_good_refusal("too many to simulate" --asynchronous --micro-batches 100000 --schedule all)
expect_good_refusal("-per-round, 3, does not divide --micro-batches, 8" --micro-batches-per-round 3)
expect_good_refusal("-per-round, 16, does not divide" --micro-batches-per-round 16)
expect_good_refusal("--device-speeds has 2 speeds, but there are 4 devices" --device-speeds 1,1)
foreach(speed 0 -1 nan inf 1e-300 fast)
  expect_good_refusal("--device-speeds" --device-speeds 1,1,1,${speed})
endforeach()
expect_good_refusal("--device-memory: '1 parsec'" --device-memory "1 parsec")
expect_good_refusal("--device-memory" --device-memory 0)

# Schedules
expect_good_refusal("'gpipes' is not known; known are naive, .*, earliest-finish, all"
  --schedule gpipes)
foreach(schedule IN LISTS schedules)
  expect_good_refusal("'x${schedule}' is not known; .* ${schedule}," --schedule x${schedule})
endforeach()
expect_good_refusal("even number of devices" --schedule dualpipe --devices 3)
expect_good_refusal("even number of micro-batches" --schedule dualpipe --micro-batches 7)
expect_good_refusal("at least 2 \\(N - 1\\)" --schedule dualpipe --micro-batches 4)
foreach(micro_batches 1 6)
  expect_good_refusal("a multiple of the devices"
    --schedule interleaved-1f1b --stages-per-device 2 --micro-batches ${micro_batches})
endforeach()

# Stages that are not a partition
foreach(schedule IN LISTS schedules ITEMS all)
  set(with --schedule ${schedule})
  expect_good_refusal("must cover the 8 layers" ${with} --forward-stages 4 --backward-stages 4,3)
  expect_good_refusal("must cover the 8 layers" ${with} --forward-stages 4 --backward-stages 4,5)
  expect_good_refusal("must cover the 8 layers" ${with} --backward-stages 100000)
  expect_good_refusal("--forward-stages cover 4 layers, but must cover the 5 before"
    ${with} --forward-stages 4 --backward-stages 3,5)
  expect_good_refusal("--forward-stages cover 6 layers, but must cover the 5 before"
    ${with} --forward-stages 3,3 --backward-stages 3,5)
  expect_good_refusal("needs --backward-stages" ${with} --forward-stages 4,4)
endforeach()
foreach(schedule roundpipe earliest-finish)
  expect_good_refusal("must leave the layers of the first backward stage to it"
    --schedule ${schedule} --forward-stages 4,4 --backward-stages 4,4)
endforeach()
expect_good_refusal("no stage is fused"
  --schedule gpipe --forward-stages 2,2,2 --backward-stages 2,2,2,2)

# Memory: the stage that needs most, its bytes, and a budget that would do, and really does
set(bytes [["boundary_bytes": 3000, "saved_bytes": 50000, "workspace_bytes": 7000]])
set(layers)
foreach(i RANGE 1 9)
  math(EXPR parameters "${i} * 7000 % 20000 + 1000")
  list(APPEND layers "${layer}, ${bytes}, \"parameter_bytes\": ${parameters}")
endforeach()
write_costs(bytes "" ${layers})
function(expect_least pattern)
  set(run --costs in/bytes ${ARGN})
  expect_refusal("${pattern}" ${run} ${outputs} --device-memory 1000)
  if(NOT refusal MATCHES "([0-9]+) bytes( \\([^)]*\\))? would do")
    message(SEND_ERROR "the refusal names no least memory: ${refusal}")
    return()
  endif()
  set(least ${CMAKE_MATCH_1})
  math(EXPR less "${least} - 1")
  expect_refusal("${pattern}.* ${least} bytes .*would do"
    ${run} ${outputs} --device-memory ${less})
  execute_process(COMMAND "${PROGRAM}" ${run} --device-memory ${least}
    WORKING_DIRECTORY "${WORK_DIR}" RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${ARGN}: ${least} bytes are not enough:\n${out}")
  endif()
endfunction()
set(stage "the (forward|backward) stage of layers [0-9]+ to [0-9]+ needs most, [0-9]+ bytes")
foreach(more "" --asynchronous "--partition-by;simulation" "--devices;1" "--micro-batches;1"
    "--forward-stages;3,3;--backward-stages;3,3,3")
  expect_least("${stage}" ${more})
  expect_least("${stage}" --schedule earliest-finish ${more})
endforeach()
foreach(schedule naive gpipe 1f1b zb-h1 dualpipe)
  expect_least("${schedule} .*device [0-9]+, .*needs [0-9]+ bytes" --schedule ${schedule})
endforeach()
foreach(schedule interleaved-1f1b looped-bfs)
  expect_least("${schedule} .*device [0-9]+, .*needs [0-9]+ bytes"
    --schedule ${schedule} --stages-per-device 2)
endforeach()
expect_refusal("no schedule applies.*${stage}"
  --costs in/bytes ${outputs} --schedule all --device-memory 1000)

# Output
expect_refusal("cannot write 'missing/plan.json'" --costs in/good --json missing/plan.json)
expect_refusal("cannot write 'missing/plan.svg'"
  --costs in/good --json out/plan.json --svg missing/plan.svg)
expect_refusal("cannot write 'missing/plan.trace'"
  --costs in/good --json out/plan.json --svg out/plan.svg --trace missing/plan.trace)
expect_refusal("cannot write 'missing/plan-naive.svg'"
  --costs in/good --schedule all --json out/plan.json --svg missing/plan.svg)
expect_refusal("cannot write 'in'" --costs in/good --json in)
expect_refusal("--json and --svg name the same file" --costs in/good --json out/a --svg out/a)
expect_refusal("--svg and --trace name the same file" --costs in/good --svg out/a --trace out/a)
if(EXISTS /dev/full)
  expect_refusal("/dev/full" --costs in/good --json /dev/full --svg out/plan.svg)
  expect_refusal("written" --costs in/good --json out/plan.json --trace /dev/full)
endif()
write_costs(nothing "" [["forward_ms": 0, "backward_ms": 0]])
expect_refusal("picture" --costs in/nothing --json out/plan.json --svg out/plan.svg)

# Help is not an error, and small cases, however odd, get plans.
execute_process(COMMAND "${PROGRAM}" --help RESULT_VARIABLE status OUTPUT_VARIABLE out)
if(NOT status EQUAL 0 OR NOT out MATCHES "--micro-batches-per-round")
  message(SEND_ERROR "--help ended with ${status}:\n${out}")
endif()
write_costs(one "" "${layer}")
write_costs(free "" [["forward_ms": 0, "backward_ms": 0]] "${layer}"
  [["forward_ms": 0, "backward_ms": 0]])
foreach(costs one free nothing good)
  foreach(devices 1 2 4)
    foreach(micro_batches 1 2 8)
      foreach(more "" --asynchronous "--stages-per-device;9" --recompute-waits-for-gradient)
        set(run --costs in/${costs} --devices ${devices} --micro-batches ${micro_batches}
          --schedule all --json - ${more})
        execute_process(COMMAND "${PROGRAM}" ${run} WORKING_DIRECTORY "${WORK_DIR}" TIMEOUT 60
          RESULT_VARIABLE status OUTPUT_VARIABLE json ERROR_VARIABLE err)
        string(JSON planned ERROR_VARIABLE bad LENGTH "${json}")
        if(NOT status EQUAL 0 OR bad OR planned LESS 7 OR json MATCHES "null")
          message(SEND_ERROR "plan_pipeline ${run}\nended with ${status}:\n${json}${err}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()
