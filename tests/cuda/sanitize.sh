#!/usr/bin/env bash
# Runs the GPU tests of a build under the tools of compute-sanitizer: bash tests/cuda/sanitize.sh
# BUILD [TOOL...]. The default is memcheck, and without cuDNN also racecheck and initcheck. Reports
# for each program whether it is clean, also in BUILD/sanitize, which holds the logs; for those that
# take longest, for each of their test cases. JOBS of these run at once, on the devices GPUS in turn.
#
# The tools do not follow bulk copies (TMA): initcheck misses their stores, and racecheck misses the
# waits for them. cuBLASLt's kernels use bulk copies when operands are aligned to 16 bytes, cuDNN's
# kernels always. For these two tools, other kernels therefore compute the products, and BUILD must
# be without cuDNN (-DROUNDPIPE_ENABLE_CUDNN=OFF), so that our own attention runs.
set -uo pipefail
build=${1:?usage: bash tests/cuda/sanitize.sh BUILD [TOOL...]}
shift
tools=("$@")
if grep -qsE "^ROUNDPIPE_CUDNN_LIBRARY:FILEPATH=/" "$build/CMakeCache.txt"; then
  [[ ${#tools[@]} -gt 0 ]] || tools=(memcheck)
  if [[ ${tools[*]} != memcheck ]]; then
    echo "$build has cuDNN; racecheck and initcheck need a build without" >&2
    exit 2
  fi
fi
[[ ${#tools[@]} -gt 0 ]] || tools=(memcheck racecheck initcheck)
logs=$build/sanitize
mkdir -p "$logs"

# Leaves out tests that cannot pass under a tool, because the tool launches one kernel after the
# other, slows copies or holds memory of the device itself, and tests that take minutes and run the
# same kernels as the rest.
left_out() { # TOOL NAME
  case $1.$2 in
    *.cuda.matmul) echo "*does not wait for the caller*,*what a limit leaves*" ;;
    *.cuda.cuda_backend) echo "both directions*" ;;
    racecheck.cuda.attention) echo "whatever*,*as exact*,*equal bits*" ;;
    *.cuda.pipeline) echo "*driver's count*,*thousand*,*learns a rule*" ;;
  esac
}

cases() { # TOOL PROGRAM: the names of those that run
  local left
  left=$(left_out "$1" "$(basename "$2")")
  "$2" --list-test-cases ${left:+-tce="$left"} | grep -vE "^(\[doctest\]|=+$)"
}

parts() { # TOOL: each PROGRAM, or, of those that take longest and come first, PROGRAM CASE
  local program long=(layers pipeline)
  [[ -z ${GPUS:-} ]] || export CUDA_VISIBLE_DEVICES=${GPUS%%,*} # as many as each case will see
  for program in "${long[@]/#/$build/tests/cuda.}"; do
    [[ ! -x $program ]] || seq -f "$program %g" "$(cases "$1" "$program" | wc -l)"
  done
  for program in "$build"/tests/cuda.*; do
    [[ -f $program && -x $program ]] || continue
    [[ " ${long[*]} " == *" ${program##*/cuda.} "* ]] || echo "$program"
  done
}

check() { # NUMBER TOOL PROGRAM [CASE], which is a number, too
  local tool=$2 program=$3 name log left only='' begin=$SECONDS options=() gpus
  name=$(basename "$program")
  log=$logs/$tool.$name${4:+.$4}.log
  if [[ -n ${GPUS:-} ]]; then
    IFS=, read -ra gpus <<<"$GPUS"
    export CUDA_VISIBLE_DEVICES=${gpus[$1 % ${#gpus[@]}]}
  fi
  if [[ -n ${4:-} ]]; then
    only=$(cases "$tool" "$program" | sed -n "$4p")
    [[ -n $only ]] || { echo "FAILED $tool $name: has no case $4" && return 1; }
  fi
  case $tool in
    memcheck) [[ $name == cuda.error ]] && options=(--report-api-errors no) ;; # it provokes them
    *)
      export ROUNDPIPE_TEST_MATMUL_ALIGNMENT=4
      # To time a dozen algorithms of each shape takes minutes there: cuda.matmul does.
      [[ $name == cuda.matmul ]] || export ROUNDPIPE_TEST_MATMUL_UNMEASURED=1
      ;;
  esac
  # Racecheck looks into one kernel at a time: variants that launch the same kernels add nothing.
  [[ $tool != racecheck ]] || export ROUNDPIPE_TEST_BRIEF=1
  left=$(left_out "$tool" "$name")
  timeout "${LIMIT:-3600}" compute-sanitizer --tool "$tool" --error-exitcode 99 "${options[@]}" \
    "$program" ${left:+-tce="$left"} ${only:+-tc="${only//,/?}"} >"$log" 2>&1
  local code=$? verdict=clean
  [[ $code == 77 ]] && verdict=skipped && code=0 # without a device, or without the cuDNN that it is about
  [[ $code == 0 ]] || verdict="FAILED ($code)"
  echo "$verdict $tool $name${only:+: $only}," \
    "$((SECONDS - begin)) s: $(grep -E "(ERROR|RACECHECK) SUMMARY" "$log" | tail -1)"
  [[ $code == 0 ]]
}
export -f cases check left_out
export logs

number=0
for tool in "${tools[@]}"; do
  while read -r part; do
    echo "$((number++)) $tool $part"
  done < <(parts "$tool")
done | xargs -P "${JOBS:-1}" -L 1 bash -c 'check "$@"' check | tee "$logs/summary"
status=${PIPESTATUS[1]}
if ! grep -q "^clean" "$logs/summary"; then
  echo "nothing is known to be clean" >&2
  exit 1
fi
exit "$status"
