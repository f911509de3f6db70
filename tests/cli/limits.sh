#!/usr/bin/env bash
# The limits of the process (ulimit): what they stop is told in one line, with exit status 1.
. "$(dirname "$0")/helpers.sh"
novel=$source_dir/scripts/prompts/novels/01.txt

# under LIMIT... -- ARGUMENTS: dtrun under ulimit LIMIT
under() {
  local limit=()
  while [ "$1" != -- ]; do limit+=("$1") && shift; done
  shift
  (ulimit "${limit[@]}" && exec "$dtrun" "$@")
}

it_says_that_the_stack_is_too_small() {
  for kib in 64 1023; do
    run under -s $kib -- dynatree --text hello -n 4
    [ "$status" -eq 1 ] || fail "$kib KiB: exit status $status, expected 1"
    says_in_one_line "the stack is limited to $kib KiB, at least 1024 are needed"
  done
}
it_runs_with_the_least_stack_whatever_the_input() {
  run under -s 1024 -- dynatree --prompt "$novel" -n 40
  [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
  deep=$(printf '[%.0s' $(seq 900))
  for line in "$deep" "{\"prompt\": \"hello\", \"more\": $deep${deep//[/]}}"; do
    echo "$line" >deep.jsonl
    run under -s 1024 -- ar --prompts deep.jsonl -n 4
    [ "$status" -le 2 ] || fail "exit status $status, expected 0 or 2"
  done
  cat >recursive.lua <<'LUA'
local function deep(text) return (text:gsub(".", deep)) end
local ok, message = pcall(deep, "x")
assert(not ok and message:find "C stack overflow", message)
LUA
  run under -s 1024 -- run ./recursive.lua
  [ "$status" -eq 0 ] || fail "exit status $status, expected 0"
}
it_says_that_a_file_may_grow_no_further() {
  unset HOME XDG_CACHE_HOME # what is learned of costs grows to more than that, too, or not: as fast as the machine was
  for option in --json --trace; do
    run under -f 1 -- linear --prompt "$novel" -n 60 -q $option out
    [ "$status" -eq 1 ] || fail "$option: exit status $status, expected 1"
    says_in_one_line 'out: File too large' "$option"
  done
  run under -f 1 -- ar --prompt "$novel" -n 600 --ignore-eos -q
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  says_in_one_line 'standard output: File too large'
}

run_tests
