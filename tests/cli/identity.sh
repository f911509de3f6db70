#!/usr/bin/env bash
# Measurements made with different things are not mixed: an experiment can only be continued by the same program, models and
# policies that started it.
. "$(dirname "$0")/helpers.sh"
novel=$source_dir/scripts/prompts/novels/01.txt
sweep=(run sweep -t 1 --prompt "$novel" --chars 80 -n 4 --out o.jsonl)
again='start again with --out and another file'

# stays PATTERN COMMAND...: it is refused with status 2 and one line, and the file of results, with its incomplete line, is unchanged
stays() {
  local pattern=$1
  shift
  printf '{"schema": "dtrun.run/1", "ar' >>o.jsonl
  cp o.jsonl before
  run "$@"
  [ "$status" -eq 2 ] || fail "exit status $status, expected 2"
  says_in_one_line "o.jsonl: $pattern: $again" sweep
  same_text before o.jsonl
}

it_notes_down_what_it_was_made_with() {
  succeeds "${sweep[@]}" linear
  head -n 1 o.jsonl | grep -qE '"build": "[0-9a-f]{64}".*"draft_hash": "[0-9a-f]{64}".*"target_hash": "[0-9a-f]{64}"' || fail 'no hashes in the head'
  [ "$(grep -cE '"source": "[0-9a-f]{64}"' o.jsonl)" -eq "$(($(wc -l <o.jsonl) - 1))" ] || fail 'a run without its source'
  succeeds linear --text hello -n 4 -t 1 --json r.json
  [ "$(grep -oE '"source":\s*"[0-9a-f]*"' r.json | grep -oE '[0-9a-f]{64}')" = \
    "$(grep '"arm": "linear"' o.jsonl | head -n 1 | grep -oE '"source": "[0-9a-f]*"' | grep -oE '[0-9a-f]{64}')" ] || fail 'another source in the result'
}
it_refuses_a_policy_that_was_edited() {
  cp "$source_dir/policies/linear.lua" .
  succeeds "${sweep[@]}" ./linear.lua --set K=2
  echo '-- edited' >>linear.lua
  stays 'its runs of linear used another version of that policy \(source [0-9a-f]{64}, now [0-9a-f]{64}\)' \
    "$dtrun" "${sweep[@]}" ./linear.lua --set K=3
  cp "$source_dir/policies/linear.lua" .
  succeeds "${sweep[@]}" ./linear.lua --set K=3
}
it_refuses_another_model_of_the_same_name() {
  cp -r "$models/mini-draft" model
  succeeds "${sweep[@]}" linear --target model --draft model
  printf '\x01' | dd of=model/model.safetensors bs=1 seek="$(($(stat -c %s model/model.safetensors) - 7))" conv=notrunc status=none
  stays 'made with draft_hash = "[0-9a-f]{64}", not "[0-9a-f]{64}"' "$dtrun" "${sweep[@]}" linear --target model --draft model
}
it_refuses_another_build() {
  succeeds "${sweep[@]}" linear
  cp "$dtrun" other
  echo >>other
  export DTRUN_HOME=$source_dir
  stays 'made with build = "[0-9a-f]{64}", not "[0-9a-f]{64}"' ./other "${sweep[@]}" linear
}

run_tests
