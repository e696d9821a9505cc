# cmake [-DPROGRAM=<finetune>] -P finetune_errors.cmake
# Bad input ends finetune and generate with exit status 2 and one line on stderr that names the
# mistake, before any training, and leaves no file behind.
cmake_minimum_required(VERSION 3.25)

set(PRINTS_PROGRESS ON) # the plan, before some errors
include("${CMAKE_CURRENT_LIST_DIR}/../support/refusals.cmake")
use_refused_program(finetune)
cmake_path(REPLACE_FILENAME PROGRAM make_tiny_checkpoint OUTPUT_VARIABLE make)
cmake_path(REPLACE_FILENAME PROGRAM generate OUTPUT_VARIABLE generate)
set(finetune "${PROGRAM}")

# The folder in/`name`: the tiny checkpoint, or the one in in/`from`, with `find` in `file` replaced.
function(damage name from file find replace)
  file(REMOVE_RECURSE "${WORK_DIR}/in/${name}")
  file(COPY "${WORK_DIR}/in/${from}/" DESTINATION "${WORK_DIR}/in/${name}")
  run_in_work_dir(sed -i "s/${find}/${replace}/" "in/${name}/${file}")
  file(SHA256 "${WORK_DIR}/in/${name}/${file}" damaged)
  file(SHA256 "${WORK_DIR}/in/${from}/${file}" whole)
  if(damaged STREQUAL whole)
    message(FATAL_ERROR "in/${name}/${file} is not damaged")
  endif()
endfunction()

run_in_work_dir("${make}" --output in/tiny --hidden 32 --context 64)
run_in_work_dir("${make}" --output in/wide --hidden 64 --context 64)
run_in_work_dir("${make}" --output in/tiny_2 --hidden 32 --context 64 --seed 2)
run_in_work_dir("${make}" --output in/shards --hidden 32 --context 64 --file-bytes 30KiB)
file(WRITE "${WORK_DIR}/in/data" "{\"input_ids\": [1, 2, 3, 4, 5, 6, 7, 8]}\n")
file(WRITE "${WORK_DIR}/in/large" "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [3, 256, 1]}\n")
file(WRITE "${WORK_DIR}/in/masked" "{\"input_ids\": [1, 2], \"labels\": [-100, -100]}\n")
run_in_work_dir("${PROGRAM}" --model in/tiny --data in/data --steps 2 --lora 2 --output in/adapter --save-every 1
  --context 4)

set(small --data in/data --output out/new --steps 2 --context 4)
function(expect_model_refusal model pattern)
  expect_refusal("${pattern}" --model in/${model} ${small} ${ARGN})
endfunction()

# Folders of weights
expect_model_refusal(nothing "in/nothing/config.json")
expect_model_refusal(adapter "in/adapter.*holds no weights")
file(GLOB shards "${WORK_DIR}/in/shards/model-00002-of-*.safetensors")
file(REMOVE "${shards}")
expect_model_refusal(shards "model-00002-of-.*missing in the folder")
damage(integers tiny model.safetensors \"F32\" \"I32\")
expect_model_refusal(integers "model\\.safetensors.* is I32\\[.*which no parameter can hold")
damage(other_shape tiny config.json "\"intermediate_size\": 128" "\"intermediate_size\": 96")
expect_model_refusal(other_shape "mlp\\..*is F32\\[128, 32\\], but the model has \\[96, 32\\]")
damage(unknown tiny config.json "qwen3" "gpt2")
expect_model_refusal(unknown "model_type is .gpt2.*llama, mistral, qwen2, qwen3")
damage(untied tiny model.safetensors "lm_head" "lm_tail")
expect_model_refusal(untied "in/untied.*tensor .lm_head.weight. is missing")

# Data
expect_model_refusal(tiny "in/missing" --data in/missing)
expect_model_refusal(tiny "token.*256.*vocabulary" --data in/large)
expect_model_refusal(tiny "--context is 65, but the model is made for 64 positions" --context 65)
expect_model_refusal(tiny "--held-out 1 would leave no row" --held-out 1)
expect_model_refusal(tiny "--data-weights names 2 weights for 1 files" --data-weights 1 2)

# Adapters of another base
expect_model_refusal(wide "in/adapter.*is F32\\[2, 32\\].*has \\[2, 64\\]; is it of another base model"
  --adapter in/adapter)
expect_model_refusal(tiny "in/wide/adapter_config.json" --adapter in/wide)
expect_model_refusal(tiny "--lora and its options have no place" --adapter in/adapter --lora 2)
expect_model_refusal(tiny "'nothing' matches nothing" --lora 2 --lora-targets nothing)
expect_model_refusal(tiny "--freeze 'nothing' matches no tensor" --freeze nothing)
expect_model_refusal(tiny "--freeze leaves nothing to train" --freeze "*")
expect_model_refusal(tiny "need --lora" --rslora)

# Options
expect_refusal("--model.*required" ${small})
expect_refusal("give one of them" --model in/tiny --data in/data --output out/new)
expect_model_refusal(tiny "--batch is 16, which .* 3, do not divide" --micro-batches 3)
expect_model_refusal(tiny "--master bf16 .*needs --precision bf16, not fp32" --master bf16)
expect_model_refusal(tiny "--lr must be" --lr 0)
expect_model_refusal(tiny "--schedule.*step" --schedule step)
expect_model_refusal(tiny "CUDA" --backend cuda --devices 1000)
expect_model_refusal(tiny "--network nccl is for GPUs" --backend host --network nccl)
expect_model_refusal(tiny "smallest budget that works" --device-memory 8KiB)
expect_model_refusal(tiny "cannot write 'missing/report.json'" --json missing/report.json)

# Output, which must not hold another training
expect_model_refusal(tiny "--output is the folder of --model" --output in/tiny)
expect_model_refusal(tiny "--output already holds 'in/wide/model.safetensors'" --output in/wide)
expect_model_refusal(tiny "--output already holds 'in/adapter/snapshots/step-" --output in/adapter)
expect_model_refusal(tiny "out/new/snapshots' holds no snapshot" --resume)
expect_model_refusal(tiny "embed_tokens.weight is trained, but in the state frozen"
  --output in/adapter --resume)
expect_model_refusal(tiny "frozen parameter .*base model"
  --output in/adapter --resume --lora 2 --model in/tiny_2)

# generate
set(PROGRAM "${generate}")
set(NAME generate)
expect_refusal("in/nothing/config.json" --model in/nothing --prompt-ids 1)
expect_refusal("token 256 is not in the vocabulary of 256" --model in/tiny --prompt-ids 1,256)
expect_refusal("66 positions, but the model is made for 64" --model in/tiny --prompt-ids 1,2,3)
expect_refusal("--top-p must be" --model in/tiny --prompt-ids 1 --top-p 0)
expect_refusal("in/adapter.*another base" --model in/wide --adapter in/adapter --prompt-ids 1 --tokens 2)
