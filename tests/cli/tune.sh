#!/usr/bin/env bash
# dtrun run tune: the preset it finds, and which runs use it.
. "$(dirname "$0")/helpers.sh"
novels=$source_dir/scripts/prompts/novels
tune=(run tune --settings 3 -n 6 --repeats 1 --chars 60 -t 1 --save-anyway)

# The speed of the machine decides which of the two it is.
it_tells_whether_the_preset_was_saved() {
  export XDG_CONFIG_HOME=$PWD/config
  succeeds run tune --settings 2 -n 4 --repeats 1 --chars 40 -t 1 fixed_tree --prompt "$novels"/0[12].txt
  local saved=no
  compgen -G 'config/dtrun/presets/fixed_tree-*.json' >/dev/null && saved=yes
  if grep -qE '^not saved: on held-out prompts, (the defaults|plain decoding|the defaults and plain decoding) decoded faster than tuned; save it with --save-anyway$' stdout; then
    [ $saved = no ] || fail 'it was saved'
  else
    grep -q '^saved: ' stdout || fail 'neither saved nor not saved'
    [ $saved = yes ] || fail 'it was not saved'
  fi
}
it_keeps_what_it_found_as_a_preset_of_this_policy_pair_and_machine() {
  export XDG_CONFIG_HOME=$PWD/config
  refuses 2 "linear has no preset 'tuned' for this pair and machine: run .dtrun run tune linear. first" \
    linear --preset tuned --text hello -n 4 -t 1
  succeeds "${tune[@]}" linear --prompt "$novels"/0[1-4].txt
  grep -qE '^speedup after the prompt on 2 held-out prompts: tuned [0-9.]+x, defaults [0-9.]+x$' stdout || fail 'the comparison'
  local k
  k=$(sed -n 's/^tuned: linear K=//p' stdout)
  [ -n "$k" ] || fail 'the setting'
  succeeds linear --preset tuned --text hello -n 4 -t 1 --json r.json
  grep -qE "\"K\": *$k\b" r.json || fail "K is not $k"
  succeeds linear --preset tuned --set K=200 --text hello -n 4 -t 1 --json r.json
  grep -qE '"K": *200\b' r.json || fail '--set does not override the preset'
  succeeds run sweep linear --preset tuned --prompt "$novels/01.txt" -n 4 -t 1
  succeeds linear --help
  grep -q 'presets, --preset NAME: tuned' stdout || fail 'no preset tuned in the help'
  refuses 2 "fixed_tree has no preset 'tuned'" fixed_tree --preset tuned --text hello -n 4 -t 1
  refuses 2 "linear has no preset 'tuned' for this pair" linear --preset tuned --text hello -n 4 -t 2
  refuses 2 "linear has no preset 'tuned' for this pair" linear --preset tuned --text hello -n 4 -t 1 --draft "$models/mini-target"
  refuses 2 "linear has no preset 'tuned' for this pair" linear --preset tuned --text hello -n 4 -t 1 --weights q8
  refuses 2 "linear has no preset 'tuned' for this pair" linear --preset tuned --text hello -n 4 -t 1 --draft-weights q8
  refuses 2 "linear has no preset 'tuned' for this pair" linear --preset tuned --text hello -n 4 -t 1 --draft-vocab 600
  local preset
  preset=$(echo config/dtrun/presets/linear-*.json)
  grep -qE '"(commit|build|source|target_hash|draft_hash)": "[0-9a-f]{12,64}(-dirty)?"' "$preset" || fail 'no hashes'
  sed -Ei 's/"K": [0-9]+/"K": 999/' "$preset"
  refuses 2 'linear: preset tuned: K = 999 is out of range' linear --preset tuned --text hello -n 4 -t 1
  mv "$preset" kept
  cp kept config/dtrun/presets/linear-0123456789abcdef.json
  refuses 2 "linear has no preset 'tuned' for this pair and machine \(presets of earlier dtrun versions are not used\): run .dtrun run tune linear. first" \
    linear --preset tuned --text hello -n 4 -t 1
  mv kept "$preset"
  sed -Ei 's/"source": "./"source": "/' "$preset"
  refuses 2 'linear-[0-9a-f]*.json: was tuned for another version of the policy: run .dtrun run tune linear. again' linear --preset tuned --text hello -n 4 -t 1
  echo '{"source": "", "params": 3}' >"$preset"
  refuses 2 'linear-[0-9a-f]*.json: not a preset \(it has no object .params.\): run .dtrun run tune linear. again' linear --preset tuned --text hello -n 4 -t 1
}
# The draft does not matter to such a policy: tune loads one, a run with this policy alone does not.
it_finds_the_preset_of_a_policy_without_a_draft() {
  export XDG_CONFIG_HOME=$PWD/config
  succeeds "${tune[@]}" suffix --prompt "$novels"/0[1-4].txt
  local run=(suffix --preset tuned --text hello -n 4 -t 1)
  succeeds "${run[@]}"
  succeeds "${run[@]}" --compare linear
  succeeds "${run[@]}" --compare linear --draft "$models/mini-target" --draft-weights q8 --draft-vocab 600
  refuses 2 "suffix has no preset 'tuned' for this pair" "${run[@]}" --weights q8
}
# Two policies whose texts have the same FNV-1a 64 hash: a preset that was found for one is not used for the other.
it_keeps_no_preset_for_a_twin() {
  export XDG_CONFIG_HOME=$PWD/config
  cp "$source_dir/tests/data/twins/keeper.lua" p.lua
  succeeds "${tune[@]}" ./p.lua --prompt "$novels"/0[1-4].txt
  succeeds ./p.lua --preset tuned --text hello -n 4 -t 1
  cp "$source_dir/tests/data/twins/thief.lua" p.lua
  refuses 2 'p-[0-9a-f]{64}.json: was tuned for another version of the policy: run .dtrun run tune ./p.lua. again' \
    ./p.lua --preset tuned --text hello -n 4 -t 1
}
it_refuses_what_it_cannot_tune() {
  export XDG_CONFIG_HOME=$PWD/config
  refuses 2 'ar has no parameters to tune' "${tune[@]}" ar --prompt "$novels"/0[1-4].txt
  refuses 2 'no policy: expected' "${tune[@]}" --prompt "$novels"/0[1-4].txt
  refuses 2 "unexpected argument 'ar': give one policy at a time" "${tune[@]}" linear ar --prompt "$novels"/0[1-4].txt
  refuses 2 'at least 2 prompts' "${tune[@]}" linear --prompt "$novels/01.txt"
  refuses 2 "no policy 'nothing'" "${tune[@]}" nothing --prompt "$novels"/0[1-4].txt
}
it_says_where_the_preset_could_not_be_kept() {
  touch config
  XDG_CONFIG_HOME=$PWD/config run "$dtrun" "${tune[@]}" linear --prompt "$novels"/0[1-4].txt
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  sed -i '/^dtrun: The machine was busy: /d' stderr
  says_in_one_line 'config/dtrun/presets/linear-.*: Not a directory' tune
  XDG_CONFIG_HOME='' HOME='' run "$dtrun" "${tune[@]}" linear --prompt "$novels"/0[1-4].txt
  [ "$status" -eq 1 ] || fail "exit status $status, expected 1"
  sed -i '/^dtrun: The machine was busy: /d' stderr
  says_in_one_line 'no folder for presets: set XDG_CONFIG_HOME or HOME' tune
}

run_tests
