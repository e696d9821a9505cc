#!/usr/bin/env bash
# Kills a random rank of a training, again and again:
#   tests/crash/kill_a_rank.sh MPI_RANKS MPIRUN [KILLS]
# A training of 2 to 4 ranks saves snapshots, each rank its share. A random moment after the first one,
# a rank is killed; that fell inside a save if it left a folder that is not finished.
# All others must end within 10 s, and one line must name the rank and the signal. Then one rank fewer
# goes on from the newest snapshot, with the bits of a training that was never interrupted. Prints how
# long it took until all had ended.
set -euo pipefail
program=${1:?usage: kill_a_rank.sh MPI_RANKS MPIRUN [KILLS]}
mpirun=${2:?usage: kill_a_rank.sh MPI_RANKS MPIRUN [KILLS]}
kills=${3:-50}
most_ms=10000
work=$(mktemp -d)
launcher=""
trap '[[ -z $launcher ]] || kill "$launcher" 2>/dev/null || true; rm -rf "$work"' EXIT
digests=$work/digests
folder=$work/snapshots

fail() {
  echo "kill $i: $*" >&2
  exit 1
}

# Whether process $1 is there, and not just its exit status.
runs() {
  [[ -e /proc/$1/stat ]] && ! grep -q ') Z ' "/proc/$1/stat" 2>/dev/null
}

i=0 # for messages
"$program" kill_a_rank reference "$digests" 150
times=() inside=0
for ((i = 1; i <= kills; ++i)); do
  rm -rf "$folder"
  ranks=$((2 + RANDOM % 3))
  exec 3< <(exec "$mpirun" -n $ranks "$program" kill_a_rank train "$digests" "$folder" 2>&1)
  launcher=$!
  pids=()
  for ((r = 0; r < ranks; ++r)); do
    read -r word rank pid step <&3 || true
    [[ $word == rank ]] || fail "the training did not begin: $word $rank $pid $step"
    pids[rank]=$pid
  done
  until compgen -G "$folder/step-*" >/dev/null; do
    runs "$launcher" || fail "the training ended by itself: $(cat <&3)"
    sleep 0.01
  done
  victim=$((RANDOM % ranks))
  sleep "$(printf "0.%03d" $((RANDOM % 1000)))"
  begin=$(date +%s%N)
  kill -KILL "${pids[victim]}"
  code=0
  wait "$launcher" || code=$?
  launcher=""
  for pid in "${pids[@]}"; do
    while runs "$pid"; do
      (($(date +%s%N) - begin < most_ms * 1000000)) || fail "process $pid still runs"
      sleep 0.01
    done
  done
  ms=$((($(date +%s%N) - begin) / 1000000))
  said=$(cat <&3)
  exec 3<&-
  ((code != 0)) || fail "mpirun reports success"
  ((ms <= most_ms)) || fail "all had ended after $ms ms"
  lines=$(grep -ci 'rank' <<<"$said" || true)
  grep -q "rank $victim .*signal 9" <<<"$said" && ((lines == 1)) ||
    fail "rank $victim was killed, and the others said: $said"
  times+=("$ms")
  ! compgen -G "$folder/*.partial" >/dev/null || inside=$((inside + 1))
  said=$("$mpirun" -n $((ranks - 1)) "$program" kill_a_rank train "$digests" "$folder" 8 2>&1) ||
    fail "$((ranks - 1)) ranks do not go on alike: $said"
  ! grep -q 'rank .* 0$' <<<"$said" || fail "no snapshot was found: $said"
done
mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
echo "$kills kills, $inside inside a save: all others had ended after a median of ${times[kills / 2]} ms and at most" \
  "${times[kills - 1]} ms, and one rank fewer went on alike"
