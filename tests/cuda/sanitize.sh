#!/usr/bin/env bash
# Runs the GPU tests of a build under the tools of compute-sanitizer: bash tests/cuda/sanitize.sh
# BUILD [TOOL...], by default memcheck, racecheck and initcheck. Says of each program whether it is
# clean; logs lie in BUILD/sanitize. JOBS programs run at once, on the devices GPUS in turn.
#
# initcheck does not see what bulk copies (TMA) store. So products are made by kernels that do
# without them, and BUILD must be without cuDNN (-DROUNDPIPE_ENABLE_CUDNN=OFF), whose kernels use
# them too. racecheck leaves out kernels of cuDNN, in which it reports what is not ours to mend.
set -uo pipefail
build=$1
shift
tools=("${@:-}")
[[ -n ${tools[0]} ]] || tools=(memcheck racecheck initcheck)
logs=$build/sanitize
mkdir -p "$logs"

# What takes minutes under a tool, and runs the same kernels as the rest.
left_out() {
  case $1 in
    cuda.pipeline) echo "*thousand*,*learns a rule*" ;;
    cuda.attention) echo "*without a fixed order*" ;;
  esac
}

check() { # TOOL PROGRAM NUMBER
  local tool=$1 program=$2 options=() log=$logs/$1.$(basename "$2").log begin=$SECONDS
  [[ -n ${GPUS:-} ]] && IFS=, read -ra gpus <<<"$GPUS" && export CUDA_VISIBLE_DEVICES=${gpus[$3 % ${#gpus[@]}]}
  [[ $tool == initcheck ]] && export ROUNDPIPE_TEST_MATMUL_ALIGNMENT=2
  [[ $tool == racecheck ]] && options=(--kernel-regex-exclude kns=cudnn)
  timeout "${LIMIT:-600}" compute-sanitizer --tool "$tool" --error-exitcode 99 "${options[@]}" \
    "$program" -tce="$(left_out "$(basename "$program")")" >"$log" 2>&1
  local code=$?
  echo "$([[ $code == 0 ]] && echo clean || echo "FAILED ($code)") $tool $(basename "$program")," \
    "$((SECONDS - begin)) s: $(grep -E "ERROR SUMMARY|RACECHECK SUMMARY" "$log" | tail -1)"
  [[ $code == 0 ]]
}
export -f check left_out
export logs

number=0
for tool in "${tools[@]}"; do
  for program in "$build"/tests/cuda.*; do
    [[ -x $program && ! -d $program ]] && echo "$tool $program $((number++))"
  done
done | xargs -P "${JOBS:-1}" -L 1 bash -c 'check "$@"' check
