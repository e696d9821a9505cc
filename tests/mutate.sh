#!/usr/bin/env bash
# Plants small bugs in copies of the headers, one at a time, and prints those that no test catches:
#   tests/mutate.sh [--check] [-j N] [ROOM...]
# N bugs are tried at once (default: 1), those of every list in tests/mutants/ or of the rooms named.
# --check only reads the lists. CXX, CXXFLAGS and LDFLAGS choose the compiler and add options.
#
# A list is tests/mutants/ROOM.txt; its records are separated by blank lines:
#   # one sentence: what a user would suffer
#   file: include/roundpipe/ROOM/NAME.hpp
#   from: text on one line that occurs exactly once in the file
#   to: what stands there instead; may be empty
#   tests: unit/ROOM/NAME.test.cpp ...   under tests/: of unit/, property/, static/ or compile_fail/
#   equivalent: why no user could see it   (only where no test can catch it)
#
# The exit status is 1 if a bug survives that no reason explains, or if a test catches one that has
# a reason; 2 if a list is wrong or a test fails without any bug.
# shellcheck disable=SC2016,SC2317 # bash -c calls the functions
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export root CXX=${CXX:-g++} CXXFLAGS=${CXXFLAGS:-} LDFLAGS=${LDFLAGS:-}

fail() {
  echo "$*" >&2
  exit 2
}

jobs=1 only_check=
while [[ ${1:-} == -* ]]; do
  case $1 in
    --check) only_check=1 ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -j*) jobs=${1#-j} ;;
    *) fail "usage: tests/mutate.sh [--check] [-j N] [ROOM...]" ;;
  esac
  shift
done
rooms=("$@")
if [[ ${#rooms[@]} == 0 ]]; then
  for list in "$root"/tests/mutants/*.txt; do rooms+=("$(basename "$list" .txt)"); done
fi

work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
mkdir "$work/bugs" "$work/tests"

# Reads a list: a folder $work/bugs/ROOM.NUMBER for each bug, with a file for each field.
wrong=0
complain() {
  echo "$room.txt:$line_number: $*" >&2
  wrong=1
}
finish_record() {
  local bug text rest test
  [[ -z ${file:+set}${from:+set} ]] && return # a comment alone
  printf -v bug '%s/bugs/%s.%02d' "$work" "$room" $((++number))
  [[ $what && $file && $from && $to_given && $tests ]] || complain "a record lacks a field"
  [[ $from != "$to" ]] || complain "from and to are the same"
  for test in $tests; do
    [[ -f $root/tests/$test ]] || complain "there is no tests/$test"
    printf '%s\n' "$test" >>"$work/all_tests"
  done
  [[ -f $root/$file ]] || { complain "there is no $file"; return; }
  text=$(<"$root/$file")
  rest=${text#*"$from"}
  [[ $rest != "$text" ]] || complain "$file does not hold '$from'"
  [[ $rest != *"$from"* ]] || complain "$file holds '$from' more than once"
  mkdir "$bug"
  printf '%s' "$what" >"$bug/what"
  printf '%s' "$file" >"$bug/file"
  printf '%s' "$tests" >"$bug/tests"
  printf '%s' "$equivalent" >"$bug/equivalent"
  printf '%s\n' "${text/"$from"/"$to"}" >"$bug/text"
}
clear_record() {
  what="" file="" from="" to="" to_given="" tests="" equivalent=""
}
read_list() { # ROOM
  local room=$1 number=0 line_number=0 line what file from to to_given tests equivalent
  [[ -f $root/tests/mutants/$room.txt ]] || fail "there is no tests/mutants/$room.txt"
  clear_record
  while IFS= read -r line; do
    ((++line_number))
    case $line in
      '# '*) what+=${what:+ }${line#\# } ;;
      'file: '*) file=${line#file: } ;;
      'from: '*) from=${line#from: } ;;
      'to:'*) to=${line#to:} to=${to# } to_given=1 ;;
      'tests: '*) tests=${line#tests: } ;;
      'equivalent: '*) equivalent=${line#equivalent: } ;;
      '') finish_record; clear_record ;;
      *) complain "this is no field: $line" ;;
    esac
  done < <(cat "$root/tests/mutants/$room.txt"; echo) # the last record, too, ends at a blank line
}
for room in "${rooms[@]}"; do read_list "$room"; done
[[ $wrong == 0 ]] || exit 2
planted=$(find "$work/bugs" -mindepth 1 -maxdepth 1 | wc -l)
if [[ $only_check ]]; then
  echo "$planted bugs can be planted"
  exit 0
fi

# As tests/CMakeLists.txt builds a test with ROUNDPIPE_TEST_HEADER_ONLY.
compile() {
  # shellcheck disable=SC2086 # several options each
  "$CXX" -std=c++20 -O0 -UNDEBUG -pthread -w -DDOCTEST_CONFIG_USE_STD_HEADERS \
    -DDOCTEST_CONFIG_SUPER_FAST_ASSERTS -I "$root/tests" $CXXFLAGS -isystem /usr/include/eigen3 "$@"
}
# Says in one word how a test fails: run_test TEST INCLUDE FOLDER SECONDS
run_test() {
  local test=$1 include=$2 folder=$3 limit=$4 code libraries=()
  local source=$root/tests/$test
  mkdir -p "$folder"
  case $test in
    static/*)
      compile -I "$include" -include "$work/common.hpp" -fsyntax-only "$source" || echo "compile error"
      return
      ;;
    compile_fail/*)
      cmake -DCXX="$CXX" -DCXX_ID=GNU -DINCLUDE_DIR="$include" -DFILE="$source" -DWORK_DIR="$folder" \
        -P "$root/cmake/RunCompileFail.cmake" >&2 || echo "failing test"
      return
      ;;
  esac
  grep -qE "rapidcheck|<support/(property|smallest_budget)" "$source" && libraries=(-lrapidcheck)
  # shellcheck disable=SC2086
  if ! compile -I "$include" -include "$work/common.hpp" -c "$source" -o "$folder/test.o" ||
    ! "$CXX" -pthread "$folder/test.o" "$work/main.o" $LDFLAGS "${libraries[@]}" -o "$folder/test"; then
    echo "compile error"
    return
  fi
  (cd "$folder" && RC_PARAMS=seed=20260101 timeout -k 5 "$limit" ./test >&2)
  code=$?
  rm -f "$folder/test" "$folder/test.o"
  case $code in
    0 | 77) ;;
    124 | 137) echo "timeout" ;;
    1) echo "failing test" ;;
    *) echo "crash" ;;
  esac
}
# The test without a bug: it must pass, and its seconds set the limit for the bugs.
check_test() { # TEST
  local folder=$work/tests/$1 begin how
  mkdir -p "$folder"
  begin=$SECONDS
  how=$(run_test "$1" "$root/include" "$folder" 900 2>"$folder/log")
  echo $((20 + 10 * (SECONDS - begin))) >"$folder/limit"
  [[ ! $how ]] && return
  echo "tests/$1 fails without a bug: $how"
  grep -iE -m 10 "error|is not|timeout" "$folder/log"
  return 1
}
try_bug() { # FOLDER
  local bug=$1 test how="" verdict
  cp -r "$root/include" "$bug/include"
  cp "$bug/text" "$bug/$(<"$bug/file")"
  for test in $(<"$bug/tests"); do
    how=$(run_test "$test" "$bug/include" "$bug/run" "$(<"$work/tests/$test/limit")" 2>/dev/null)
    [[ $how ]] && break
  done
  if [[ $how && -s $bug/equivalent ]]; then
    verdict="NOT EQUIVALENT ($how)"
  elif [[ $how ]]; then
    verdict="caught ($how)"
  elif [[ -s $bug/equivalent ]]; then
    verdict="equivalent"
  else
    verdict="SURVIVED"
  fi
  echo "$verdict" >"$bug/verdict"
  rm -rf "$bug/include"
  echo "$(basename "$bug") $verdict: $(<"$bug/what")"
}
export -f compile run_test check_test try_bug

# What every test includes, and the main function, are compiled once.
printf '#include <%s>\n' doctest/doctest.h algorithm array atomic chrono cmath condition_variable \
  cstddef cstdint cstring functional limits map memory mutex numeric optional random set span sstream \
  stdexcept string string_view thread tuple utility variant vector >"$work/common.hpp"
compile -x c++-header "$work/common.hpp" -o "$work/common.hpp.gch" || fail "doctest does not compile"
compile -c "$root/tests/unit/main.cpp" -o "$work/main.o" || fail "tests/unit/main.cpp does not compile"

sort -u "$work/all_tests" | xargs -P "$jobs" -I {} bash -c 'check_test "$1"' check {} >&2 ||
  fail "these tests must pass before a bug is planted"
find "$work/bugs" -mindepth 1 -maxdepth 1 | sort | xargs -P "$jobs" -I {} bash -c 'try_bug "$1"' try {}

status=0
for room in "${rooms[@]}"; do
  verdicts=$(cat "$work/bugs/$room".[0-9]*/verdict)
  of() { grep -c "^$1" <<<"$verdicts"; }
  all=$(of .) survived=$(of SURVIVED) denied=$(of NOT)
  echo "$room: $all planted, $(of caught) caught, $(of equivalent) equivalent, $survived survivors"
  [[ $all -ge 10 ]] || echo "$room has fewer than 10"
  [[ $survived == 0 && $denied == 0 ]] || status=1
done
exit "$status"
