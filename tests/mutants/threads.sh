#!/usr/bin/env bash
# The threads of a pass under ThreadSanitizer (clang's): no report on a text, a batch and several threads, and one on each mutant,
# which is a line changed in a copy.  threads.sh BUILD_DIR SOURCE_DIR
set -u
build=$(realpath "$1")/tsan
source_dir=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-O1 -g -std=gnu11 -D_GNU_SOURCE -fsanitize=thread -I"$source_dir/runtime" -I"$source_dir/runtime/cpu")
export TSAN_OPTIONS=exitcode=66

echo 'int main(void) { return 0; }' >"$work/empty.c"
if ! clang -fsanitize=thread "$work/empty.c" -o "$work/empty" 2>/dev/null; then
  echo 'skipped: no clang with the runtime of its thread sanitizer'
  exit 77
fi
cd "$source_dir" && cmake --preset tsan -B "$build" >"$work/log" 2>&1 &&
  cmake --build "$build" --target dtrun test_team >>"$work/log" 2>&1 || { tail -30 "$work/log"; exit 1; }
failed=0

# clean NAME COMMAND...
clean() {
  local name=$1
  shift
  if "$@" >"$work/output" 2>&1; then
    echo "ok    $name"
  else
    tail -40 "$work/output"
    echo "FAIL  $name"
    failed=1
  fi
}
# The scalar kernels: clang's sanitizer does not watch loads and stores of more than 16 bytes.
text=(--backend cpu:scalar --ignore-eos -q -n 8 -p 'The old man went down to the')
for i in 1 2 3; do echo "{\"prompt\": \"The old man $i went\"}"; done >"$work/prompts.jsonl"
clean 'the team' "$build/tests/test_team"
clean 'one sequence' "$build/dtrun" dynatree -t 2 "${text[@]}"
clean 'one sequence, sampled' "$build/dtrun" dynatree -t 2 --temp 1 --top-p 0.9 "${text[@]}"
clean 'rounded weights and caches' "$build/dtrun" linear -t 2 --weights q4 --draft-weights q8 --cache-dtype f16 "${text[@]}"
clean 'more threads than heads share out' "$build/dtrun" linear -t 3 "${text[@]}"
clean 'a batch' "$build/dtrun" linear -t 2 --backend cpu:scalar --ignore-eos -n 4 --prompts "$work/prompts.jsonl"

# mutant NAME FILE OLD NEW TARGET ARGUMENTS...: OLD stands in runtime/cpu/FILE once; TARGET, of ninja's, runs changed
mutant() {
  local name=$1 file=$2 old=$3 new=$4 target=$5
  shift 5
  cp "$source_dir/runtime/cpu/$file" "$work/changed.c"
  [ "$(grep -cF -- "$old" "$work/changed.c")" -eq 1 ] || { echo "FAIL  $name: not one '$old' in $file"; failed=1; return; }
  OLD=$old NEW=$new perl -pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$work/changed.c"
  local link # the build's own, with the changed file before the archives that hold the original
  link=$(ninja -C "$build" -t commands "$target" | tail -n 1)
  clang "${flags[@]}" -c "$work/changed.c" -o "$work/changed.o" &&
    (cd "$build" && eval "${link/ -o $target / $work/changed.o -o $work/changed }") || exit 1
  if "$work/changed" "$@" >"$work/output" 2>&1; then
    echo "FAIL  $name: nobody noticed"
    failed=1
  elif grep -q 'WARNING: ThreadSanitizer: data race' "$work/output"; then
    echo "ok    $name: $(grep -c 'WARNING: ThreadSanitizer: data race' "$work/output") reports"
  else
    tail -20 "$work/output"
    echo "FAIL  $name: something else"
    failed=1
  fi
}
mutant 'an arrival that shows nothing' team.c '1, memory_order_acq_rel) + 1' '1, memory_order_relaxed) + 1' tests/test_team
mutant 'a wait that sees nothing' team.c '&w->value, memory_order_acquire) == value' '&w->value, memory_order_relaxed) == value' tests/test_team
mutant 'no barrier after the norms' layer.c 'if (c->n > CPU_OWN_ROWS) cpu_wait(c->me);' '' \
  dtrun linear -t 2 "${text[@]}"
mutant 'no barrier after keys and values' heads.c 'if (!write_only) cpu_wait(c->me);' '' \
  dtrun linear -t 3 "${text[@]}"
exit $failed
