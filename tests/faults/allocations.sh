#!/usr/bin/env bash
# Every allocation of some short runs fails in turn, alone and together with all later ones (fail_alloc.c). dtrun must
# either end
# by itself, with exit status 1 and one line about memory, or continue as if nothing had happened.
# allocations.sh DTRUN SOURCE LIBRARY [STEP]: each STEP-th allocation (default: some 40 of each run). From a line like
# "allocation 5758 and all after it", FAULTS=all,5758 LD_PRELOAD=LIBRARY dtrun ... looks at one; "one" fails just that.
. "$(dirname "$0")/../cli/helpers.sh"
library=$(realpath "$3")
step=${4:-}
export XDG_CACHE_HOME=$PWD/cache XDG_CONFIG_HOME=$PWD/config

# with_faults FAULTS ARGUMENTS...
with_faults() {
  local faults=$1
  shift
  FAULTS=$faults LD_PRELOAD=$library "$dtrun" "$@" >stdout 2>stderr
}

# allocations ARGUMENTS...: how many the run makes
allocations() {
  with_faults 1,2000000000,log "$@"
  sed 's/ .*//' log
}

# tries_each FROM TO STEP ARGUMENTS...: these allocations one by one, each in a run of its own, which may end well
tries_each() {
  local at from=$1 to=$2 by=$3
  shift 3
  for ((at = from; at <= to; at += by)); do
    status=0
    with_faults one,$at "$@" || status=$?
    [ $status -eq 0 ] || says_in_one_line 'out of memory' "allocation $at"
    [ $status -le 1 ] || fail "allocation $at: exit status $status"
  done
}

# tries NAME ARGUMENTS...
tries() {
  local name=$1 every first
  shift
  every=${step:-$(($(allocations "$@") / 40 + 1))}
  first=$((RANDOM % every + 1))
  with_faults $every,$first,log "$@" || fail "$name: exit status $?"
  grep -q ', 0 mistakes$' log || fail "$name, from $first on: $(cat log)"
  echo "      $name: $(tail -1 log)"
}

it_survives_the_command_line() {
  tries "the default run" -p The -n 3 -t 1 -q
  tries "one text" linear -p The -n 3 -t 1 -q
  tries "one text, sampled" eagle2 -p The -n 4 -t 1 -q --temp 1 --top-p 0.9 --stop x --json /dev/null --trace /dev/null
  tries "a schema" linear -p The -n 4 -t 1 -q \
    --json-schema '{"type":"object","properties":{"a":{"enum":[1,"b"]},"b":{"pattern":"^[a-c]$"}},"additionalProperties":{"minimum":3}}'
  tries "an expression" linear -p The -n 4 -t 1 -q --regex '(a|[^b]){2}'
  tries "help" linear --help
  tries "list" --list
}

# The keys of a GGUF file, which are read before and after the tokenizer.
it_tells_of_memory_where_a_gguf_file_is_read() {
  local all gguf=(ar -m "$source_dir/tests/golden/logits/gguf_llama/model.gguf" -p hello -n 1 -t 1 -q)
  all=$(allocations "${gguf[@]}")
  tries_each 1 120 1 "${gguf[@]}"
  tries_each $((all - 300)) $((all - 200)) 1 "${gguf[@]}"
}

it_survives_several_texts() {
  printf '{"prompt": "%s"}\n' 'The ship' 'It was' 'A third' >prompts.jsonl
  tries "several texts" linear --prompts prompts.jsonl -np 2 -n 4 -t 1 -q
}

# Each text that fails has one line. A failure to write costs is not reported in addition.
it_tells_of_nothing_else_where_a_batch_has_no_memory() {
  local all at batch=(rate --prompts prompts.jsonl -np 2 -n 4 -t 1 -q)
  local XDG_CACHE_HOME=$PWD/prompts.jsonl # a file: nothing can be kept in it
  printf '{"prompt": "%s"}\n' 'The ship' 'It was' 'A third' >prompts.jsonl
  all=$(allocations "${batch[@]}")
  grep -q 'costs cannot be written to' stderr || fail 'a batch that ends well does not tell that costs cannot be kept'
  for ((at = all - 2000; at < all; at += ${step:-100})); do
    status=0
    with_faults all,$at "${batch[@]}" || status=$?
    [ $status -le 1 ] || fail "batch, all of $at: exit status $status"
    [ $status -eq 0 ] || ! grep -v '^dtrun: .*out of memory' stderr || fail "batch, all of $at: something else is told"
    [ "$(wc -l <stderr)" -eq "$(sort -u stderr | wc -l)" ] || fail "batch, all of $at: a line is there twice"
  done
}

# A failed answer is reported, and the conversation continues with the next question.
it_survives_a_conversation() {
  local all every at mode talk=(chat --template chatml -n 2 -t 1 -q)
  printf 'The\nmore\n' >typed
  all=$(allocations "${talk[@]}" <typed)
  every=$((step ? step * 50 : all / 20))
  for ((at = RANDOM % every + 1; at < all; at += every)); do
    for mode in one all; do
      status=0
      with_faults $mode,$at "${talk[@]}" <typed || status=$?
      [ $status -eq 0 ] || says_in_one_line 'memory' "conversation, $mode of $at"
      [ $status -le 1 ] || fail "conversation, $mode of $at: exit status $status"
      ! grep -v '^dtrun: .*memory' stderr || fail "conversation, $mode of $at: something else is told"
    done
  done
}

it_survives_drivers() { tries "a driver" run "$source_dir/tests/faults/driver.lua"; }

# Its file is written by one process: each failure has a run of its own, and afterwards the sweep goes on to its end.
it_survives_a_sweep() {
  local sweep=(run sweep linear --set K=1..2 --prompt "$source_dir/scripts/prompts/novels/01.txt" --chars 60 -n 4 -t 1)
  local every at mode
  every=$((step ? step * 100 : $(allocations "${sweep[@]}") / 8))
  for ((at = RANDOM % every + 1; at < 60000; at += every)); do
    for mode in one all; do
      rm -f out.jsonl
      status=0
      with_faults $mode,$at "${sweep[@]}" --out out.jsonl || status=$?
      [ $status -eq 0 ] || says_in_one_line memory "sweep, $mode of $at"
      [ $status -le 1 ] || fail "sweep, $mode of $at: exit status $status"
      succeeds "${sweep[@]}" --out out.jsonl
      grep -q '^2 settings, .* outputs equal$' stdout || fail "sweep, $mode of $at: $(head -1 stdout)"
    done
  done
}

run_tests
