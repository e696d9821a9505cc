#!/usr/bin/env bash
# Kills a training while it saves its snapshots, again and again:
#   tests/crash/kill_while_saving.sh SAVING_TRAINER [KILLS [MODE...]]
# Trainings save in each MODE in turn: copied, live, waiting (default: all of them).
# After each SIGKILL, at a random moment of a training that saves after every step, all snapshots
# that have their names must load and go on with the bits of a training that was never killed. The
# next training goes on from the newest. A kill fell inside a save if it left a folder that is not
# finished, or not yet removed.
set -euo pipefail
trainer=${1:?usage: kill_while_saving.sh SAVING_TRAINER [KILLS [MODE...]]}
kills=${2:-20}
modes=("${@:3}")
((${#modes[@]} > 0)) || modes=(copied live waiting)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
digests=$work/digests
folder=$work/snapshots

fail() {
  echo "$*" >&2
  exit 1
}

"$trainer" reference "$digests" $((kills * 60 + 100))
inside=0 last=0
for ((i = 1; i <= kills; ++i)); do
  exec 3< <(exec "$trainer" train "$digests" "$folder" "${modes[i % ${#modes[@]}]}")
  pid=$!
  word="" step=""
  read -r word step <&3 || true
  [[ $word == ready ]] || fail "kill $i: the training did not go on"
  [[ $step == "$last" ]] || fail "kill $i: went on from step $step, but the newest is $last"
  sleep "$(printf "0.%03d" $((RANDOM % 150)))"
  kill -KILL "$pid" 2>/dev/null || true
  code=0
  wait "$pid" || code=$?
  exec 3<&-
  [[ $code == 137 ]] || fail "kill $i: the training ended by itself with status $code"
  if compgen -G "$folder/*.partial" >/dev/null; then
    inside=$((inside + 1))
  fi
  newest=$("$trainer" check "$digests" "$folder") || fail "kill $i: $newest"
  ((newest >= last)) || fail "kill $i: the newest snapshot is of step $newest, after one of $last"
  last=$newest
done
((inside > 0)) || fail "no kill fell inside a save"
echo "$kills kills, $inside inside a save, $last steps saved: every snapshot loads and goes on alike"
