#!/usr/bin/env bash
# A target that ranks share, under a real mpirun on this host, with more ranks than processors:
# ranks.sh DTRUN SOURCE RANKS_LOGITS TEST_CROSS_ATTENTION
. "$(dirname "$0")/helpers.sh"
logits=$(realpath "$3")
writer=$(realpath "$4")
module=$(dirname "$dtrun")/dtrun-mpi.so
if [ ! -e "$module" ] || ! command -v mpirun >/dev/null; then
  echo 'skipped: no Open MPI here (openmpi-bin, libopenmpi-dev)'
  exit 77
fi
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
smollm2=$models/SmolLM2-135M-Instruct.Q4_1.gguf
[ -e "$smollm2" ] || smollm2=

# ranks R COMMAND...: runs R ranks under mpirun; a run that hangs fails with status 124
ranks() { run timeout 500 mpirun -n "$1" "${@:2}"; }
# says_one_line STATUS PATTERN: dtrun printed one line, apart from mpirun's own lines, which are between rules
says_one_line() {
  [ "$status" -eq "$1" ] || fail "exit status $status, expected $1"
  [ "$(grep -c '^dtrun: ' stderr)" -eq 1 ] || fail 'expected one line of dtrun'
  grep -qE "^dtrun: $2" stderr || fail "expected a line that matches '$2'"
}

it_computes_the_logits_of_one_process() {
  for name in llama576 qwen3 qwen35; do
    mkdir $name && "$logits" make $name "$PWD/$name" || fail "no checkpoint $name"
  done
  local hybrid=$source_dir/tests/golden/logits/gguf_qwen35/model.gguf
  set -- "$models/mini-target" "$models/mini-draft" "$PWD/llama576" "$PWD/qwen3" "$PWD/qwen35" "$hybrid" $smollm2
  "$logits" "$@" >expected || fail 'one process'
  [ "$(wc -l <expected)" -eq $# ] || fail 'too few hashes'
  for r in 1 2 3 4; do
    ranks $r "$logits" "$@"
    [ "$status" -eq 0 ] || fail "$r ranks: exit status $status"
    same_text expected stdout
  done
}
it_writes_what_one_process_writes() {
  succeeds run "$source_dir/tests/exact/ranks.lua" $smollm2
  mv stdout expected
  [ "$(wc -l <expected)" -ge 57 ] || fail 'too few lines'
  grep -q 'held to a schema.*eos.*"name": *"' expected || fail 'no text is held to a schema'
  for r in 2 3 4; do
    ranks $r "$dtrun" run "$source_dir/tests/exact/ranks.lua" $smollm2
    [ "$status" -eq 0 ] || fail "$r ranks: exit status $status"
    same_text expected stdout
  done
}
it_reads_a_prompt_and_tells_what_ranks_hold() {
  succeeds ar -n 8 -t 1 -v <<<'The sea'
  mv stdout expected
  whole=$(sed -nE 's/.*weights ([0-9]+)\..*/\1/p' stderr)
  run timeout 100 mpirun -n 2 "$dtrun" ar -n 8 -t 1 -v <<<'The sea'
  [ "$status" -eq 0 ] || fail "exit status $status"
  same_text expected stdout
  sed -nE 's/^dtrun: rank [01] on .*, cpu:[a-z0-9]*, in MB: weights ([0-9]+)\.[0-9], caches .*, resident [1-9].*/\1/p' stderr >held
  [ "$(wc -l <held)" -eq 2 ] || fail 'expected a line for each rank'
  while read -r mb; do [ "$mb" -lt $((whole * 3 / 4)) ] || fail "a rank holds $mb MB of $whole"; done <held
  grep -q 'backend cpu:[a-z0-9]*, 2 ranks' stderr || fail 'no word of ranks'
}
it_scales_positions_on_all_ranks() {
  local golden=$source_dir/tests/golden/logits/gguf_phi3_long/model.gguf scaled=(--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 64)
  for options in "-m $golden -c 40" "-m $golden -c 120" "-m $models/mini-target ${scaled[*]}"; do
    # shellcheck disable=SC2086 # a list of options
    set -- ar $options -md none -p 'It was a dark' -n 20 -t 1 -q --ignore-eos
    succeeds "$@"
    mv stdout expected
    ranks 2 "$dtrun" "$@"
    [ "$status" -eq 0 ] || fail "$options: exit status $status"
    same_text expected stdout
  done
}
it_goes_up_to_16_ranks() {
  ranks 16 "$dtrun" ar -p 'The sea' -n 3 -t 1 -q
  [ "$status" -eq 0 ] || fail "exit status $status"
  mv stdout found
  succeeds ar -p 'The sea' -n 3 -q
  same_text found stdout
  run env OMPI_COMM_WORLD_SIZE=17 OMPI_COMM_WORLD_RANK=0 "$dtrun" ar -p 'The sea'
  says_one_line 2 'mpirun: 17 ranks, at most 16 are possible'
}
it_refuses_in_one_line() {
  ranks 2 "$dtrun" --nonsense
  says_one_line 2 '.*--nonsense'
  ranks 3 "$dtrun" ar -p x --target nowhere
  says_one_line 2 '.*nowhere'
  ranks 2 "$dtrun" --version
  [ "$status" -eq 0 ] && [ "$(wc -l <stdout)" -eq 1 ] || fail 'the version, once'
  cp "$dtrun" alone
  ranks 2 ./alone ar -p x
  says_one_line 2 'mpirun: this dtrun was built without MPI: install Open MPI'
}
it_does_not_wait_for_ever_for_a_program_that_never_joins() {
  local line='mpirun: its 2 programs have not all joined within 1 s: every one must be dtrun, built with Open MPI \(DTRUN_JOIN_SECONDS=N '
  export DTRUN_JOIN_SECONDS=1
  local prompt=(ar -p x -n 3 -t 1)
  cp "$dtrun" alone # it finds no MPI
  for other in /bin/true 'sleep 100' ./alone; do
    run timeout 60 mpirun -n 1 "$dtrun" "${prompt[@]}" : -n 1 $other
    says_one_line 2 "$line"
  done
  run timeout 60 mpirun -n 1 /bin/true : -n 1 "$dtrun" "${prompt[@]}"
  says_one_line 2 "$line"
  run timeout 60 mpirun -n 2 "$dtrun" "${prompt[@]}" : -n 1 sleep 100
  [ "$status" -eq 2 ] || fail "three programs: exit status $status"
  [ ! -s stdout ] || fail 'tokens'
}
it_takes_a_limit_of_seconds() {
  local value
  for value in 0 -1 86401 99999999999999999999 1.5 1s ' 1' ten; do
    DTRUN_JOIN_SECONDS=$value ranks 2 "$dtrun" --version
    says_one_line 2 "DTRUN_JOIN_SECONDS: '$value', expected a whole number of seconds, 1 to 86400"
    [ ! -s stdout ] || fail 'the version'
  done
  for value in '' 86399 86400; do # 1 is tested above, with a program that is late
    DTRUN_JOIN_SECONDS=$value ranks 2 "$dtrun" --version
    [ "$status" -eq 0 ] && [ "$(wc -l <stdout)" -eq 1 ] || fail "DTRUN_JOIN_SECONDS='$value'"
  done
  DTRUN_JOIN_SECONDS=0 succeeds --version # without mpirun it waits for nobody
}
it_refuses_draft_heads() {
  mkdir head
  succeeds run "$source_dir/tests/cli/make_head.lua" head
  ranks 2 "$dtrun" linear -p x -t 1 --draft head
  says_one_line 2 "head: it reads rows of the target, which is split across 2 ranks"
  "$writer" write . || fail 'no assistant of Gemma 4'
  ranks 2 "$dtrun" linear --text FACE -n 4 -t 1 -m target -md assistant
  says_one_line 2 "head: it reads rows of the target, which is split across 2 ranks"
}
it_starts_programs_that_are_alone() {
  cat >child.lua <<LUA
local pipe = io.popen("'$dtrun' ar -p 'The sea' -n 4 -t 1 -q", "r")
print(pipe:read "a", pipe:close())
LUA
  succeeds run child.lua
  mv stdout expected
  ranks 2 "$dtrun" run child.lua
  [ "$status" -eq 0 ] || fail "exit status $status"
  same_text expected stdout
}
it_says_which_rank_lacks_the_model() {
  mkdir -p here/m there other/m
  cp "$models"/mini-target/* here/m
  cp "$models"/mini-draft/* other/m
  for folder in there other; do
    run timeout 100 mpirun -n 1 --wdir "$PWD/here" "$dtrun" ar -t 1 -p x -n 4 --target m : -n 1 --wdir "$PWD/$folder" "$dtrun"
    says_one_line 2 "rank 1 on $(uname -n): .*$([ $folder = there ] && echo 'm' || echo 'm is another model here than on rank 0')"
  done
}

it_tells_a_byte_that_is_another_one_in_a_copy() {
  mkdir -p one two
  for folder in one two; do cp -r "$models/mini-target" $folder/m; done
  local apart=(timeout 100 mpirun -n 1 --wdir "$PWD/one" "$dtrun" ar -t 1 -p x -n 4 --target m : -n 1 --wdir "$PWD/two" "$dtrun")
  run "${apart[@]}"
  [ "$status" -eq 0 ] || fail "the same copies: exit status $status"
  mv stdout expected
  # Rank 0 computes with its first rows, rank 1 with the others.
  printf '\x01' | dd of=two/m/model.safetensors bs=1 seek=200000 conv=notrunc status=none
  run "${apart[@]}"
  [ "$status" -eq 0 ] || fail "a byte that nobody reads: exit status $status"
  same_text expected stdout
  printf '\x01' | dd of=two/m/model.safetensors bs=1 seek=1500000 conv=notrunc status=none
  run "${apart[@]}"
  says_one_line 2 "rank 1 on $(uname -n): m/model.safetensors: tensor embed_out.weight is different from rank 0's"
  [ ! -s stdout ] || fail 'tokens'
  echo >>two/m/tokenizer.json
  run "${apart[@]}"
  says_one_line 2 "rank 1 on $(uname -n): m/tokenizer.json is different from rank 0's file"
}

# Prints the process ids of what this test runs.
mine() { pgrep -f -- "--json $PWD/result" | while read -r pid; do [ "$(cat /proc/"$pid"/comm 2>/dev/null)" = dtrun ] && echo "$pid"; done; }
gone() {
  for ((i = 0; i < 100; i++)); do
    [ -z "$(mine)" ] && return
    sleep 0.1
  done
  fail "still there: $(mine)"
}
# begins: starts three ranks that write without end
begins() {
  rm -f stdout
  mpirun -n 3 "$dtrun" ar -p 'The sea' -n -1 --ignore-eos -t 1 --json "$PWD/result" >stdout 2>stderr &
  run_pid=$!
  for ((i = 0; i < 300; i++)); do
    [ "$(stat -c %s stdout 2>/dev/null || echo 0)" -gt 40 ] && return
    sleep 0.1
  done
  fail 'it does not begin'
}
rank_of() { tr '\0' '\n' </proc/"$1"/environ | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'; }

it_ends_all_when_one_is_killed() {
  for victim in 0 1 2; do
    begins
    for pid in $(mine); do [ "$(rank_of "$pid")" = $victim ] && kill -9 "$pid"; done
    status=0
    wait $run_pid || status=$?
    [ "$status" -ne 0 ] || fail 'exit status 0'
    gone
    grep -q "process rank $victim .* exited on signal 9" stderr || fail 'mpirun says nothing'
    # dtrun's own line arrives unless mpirun closes its pipes first.
    [ "$(grep -c '^dtrun: ' stderr)" -le 1 ] || fail 'several lines of dtrun'
    ! grep '^dtrun: ' stderr | grep -v 'mpirun has ended the run: one of its ranks died' || fail 'another line'
  done
}
it_ends_all_when_mpirun_is_killed() {
  begins
  kill -9 $run_pid
  wait $run_pid 2>/dev/null
  gone
}

run_tests
