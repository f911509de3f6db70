#!/usr/bin/env bash
# Models by name: folders, files, and Hugging Face ids in a cache that this test makes.
. "$(dirname "$0")/helpers.sh"
unset HF_HOME HF_HUB_CACHE

# in_cache FOLDER ID MODEL: puts a bundled model into a cache as huggingface_hub does
in_cache() {
  local entry=$1/models--${2//\//--}
  mkdir -p "$entry/refs" "$entry/snapshots/0123abcd"
  printf '%s' 0123abcd >"$entry/refs/main"
  ln -s "$models/$3"/* "$entry/snapshots/0123abcd/"
}
runs() { succeeds "$@" --text hello -n 5 --json r.json; }
check_result() { "$dtrun" run "$source_dir/tests/cli/result.lua" r.json "$@" || fail "result.lua $*"; }

it_finds_ids_in_the_cache() {
  in_cache hf/hub some-org/Mini_1.5b mini-target
  in_cache hf/hub some-org/Mini_1.5b-draft mini-draft
  export HF_HOME=hf
  runs linear -m some-org/Mini_1.5b -md some-org/Mini_1.5b-draft
  check_result target=hf/hub/models--some-org--Mini_1.5b/snapshots/0123abcd draft=hf/hub/models--some-org--Mini_1.5b-draft/snapshots/0123abcd
  DTRUN_TARGET=some-org/Mini_1.5b runs ar
  echo 'local pair = assert(require("dt").load { target = "some-org/Mini_1.5b", draft = false }) print(pair.target.path)' >driver.lua
  succeeds run ./driver.lua
  grep -q 'snapshots/0123abcd$' stdout || fail 'no model by its id in a driver'
}
it_looks_where_huggingface_hub_looks() {
  in_cache a/hub o/n mini-target
  in_cache b o/n mini-target
  in_cache c/.cache/huggingface/hub o/n mini-target
  in_cache d/huggingface/hub o/n mini-target
  local snapshot=models--o--n/snapshots/0123abcd
  HF_HOME=a HF_HUB_CACHE=b runs ar -m o/n
  check_result target=b/$snapshot
  HF_HOME=a XDG_CACHE_HOME=d runs ar -m o/n
  check_result target=a/hub/$snapshot
  XDG_CACHE_HOME=$PWD/d HOME=c runs ar -m o/n
  check_result "target=$PWD/d/huggingface/hub/$snapshot"
  (unset XDG_CACHE_HOME && HOME=c runs ar -m o/n)
  check_result target=c/.cache/huggingface/hub/$snapshot
}
it_says_what_would_download_an_id_that_is_not_there() {
  export HF_HOME=hf
  refuses 2 'Qwen/Qwen2.5-0.5B-Instruct is neither here nor in hf/hub: dtrun pull Qwen/Qwen2.5-0.5B-Instruct downloads it$' ar -m Qwen/Qwen2.5-0.5B-Instruct --text hello
  refuses 2 ': dtrun pull o/n:f.gguf downloads it$' ar -m o/n/f.gguf --text hello
  in_cache hf/hub o/n mini-target
  refuses 2 ': dtrun pull o/draft downloads it$' linear -m o/n -md o/draft --text hello
  refuses 2 'o/other:Q4_K_M is neither here nor in hf/hub: dtrun pull o/other:Q4_K_M downloads it$' ar -hf o/other:Q4_K_M --text hello
  refuses 2 'o/other is neither here nor in hf/hub: dtrun pull o/other downloads it$' chat ar -hf o/other
  DTRUN_DRAFT=o/draft runs ar -m o/n # ar needs no draft
  rm hf/hub/models--o--n/refs/main
  refuses 2 ': dtrun pull o/n downloads it$' ar -m o/n --text hello
  echo ../../../.. >hf/hub/models--o--n/refs/main
  refuses 2 ': dtrun pull o/n downloads it$' ar -m o/n --text hello
}
it_takes_a_path_for_a_path() {
  export HF_HOME=hf
  mkdir o
  in_cache hf/hub o/n mini-target
  refuses 2 'no such folder: o/n' ar -m o/n --text hello # o is a folder here
  ln -s "$models/mini-target" o/n
  runs ar -m o/n
  check_result target=o/n
  for path in ./p/q p/q/r/../s p/ /p .p/q; do
    run "$dtrun" ar -m "$path" --text hello
    [ "$status" -eq 2 ] || fail "$path: exit status $status, expected 2"
    grep -q 'dtrun pull' stderr && fail "$path is no id"
  done
  true
}
it_takes_the_only_gguf_file_of_a_folder() {
  mkdir one two
  touch one/m.gguf two/a.gguf two/b.gguf
  refuses 2 'one/m.gguf' ar -m one --text hello
  refuses 2 'two is not a model but a folder with 2 models: name one of them: two/a.gguf, two/b.gguf$' ar -m two --text hello
}
it_looks_at_the_target_before_it_asks_for_a_draft() {
  refuses 2 'nowhere' dynatree -m nowhere --text hello
  mkdir odd
  echo '{"model_type": "zebra", "architectures": ["ZebraForCausalLM"]}' >odd/config.json
  refuses 2 '[Zz]ebra' dynatree -m odd --text hello
  refuses 2 'needs a draft model: give --draft DIR instead of --draft none' dynatree -m "$models/mini-target" -md none --text hello
  cp -r "$models/mini-draft" alone
  refuses 2 'needs a draft model, and none was found here that is made for alone: give --draft DIR' dynatree -m alone --text hello
}
it_takes_names_without_an_option() {
  export HF_HOME=hf XDG_DATA_HOME=$PWD/data
  in_cache hf/hub some-org/Mini_1.5b mini-target
  succeeds ar -m mini-target -p hello -n 5 -q
  mv stdout expected
  local words
  for words in mini-target 'mini-target ar' 'ar mini-target' some-org/Mini_1.5b 'linear some-org/Mini_1.5b -md mini-draft'; do
    # shellcheck disable=SC2086
    succeeds $words -p hello -n 5
    same_text expected stdout
    grep -q 'taken as the model' stderr && fail "$words: a name needs no explanation"
  done
  mkdir -p home/models
  printf 'tiny_pulled pkg==1 tiny.gguf 5 00\n' >home/models/pull.txt
  export DTRUN_HOME=$PWD/home
  refuses 2 'tiny_pulled is not here: dtrun pull tiny_pulled downloads it' tiny_pulled -p hello
  refuses 2 'tiny_pulled is not here: dtrun pull tiny_pulled downloads it' chat tiny_pulled
  refuses 2 "run: 'tiny_pulled' is a model, not a driver: dtrun tiny_pulled, or dtrun chat tiny_pulled" run tiny_pulled
  [ -x "$(dirname "$dtrun")/dtrun-serve" ] && refuses 2 'tiny_pulled is not here: dtrun pull tiny_pulled downloads it' serve tiny_pulled --port 0
  refuses 2 'o/n is neither here nor in hf/hub: dtrun pull o/n downloads it$' o/n -p hello
  refuses 2 "two targets: 'mini-target' and 'some-org/Mini_1.5b'" mini-target some-org/Mini_1.5b -p hello
}
it_prefers_a_policy_and_a_driver_to_a_model_of_that_name() {
  mkdir -p home/models/twin home/policies home/scripts
  touch home/models/twin/config.json
  cp "$source_dir/policies/ar.lua" home/policies/twin.lua
  echo 'print "the driver"' >home/scripts/twin.lua
  export DTRUN_HOME=$PWD/home
  succeeds twin -m mini-target -p hello -n 5
  succeeds run twin
  grep -q 'the driver' stdout || fail 'not the driver'
  rm home/policies/twin.lua home/scripts/twin.lua
  refuses 2 'twin/config.json' twin -p hello
  refuses 2 "run: 'twin' is a model, not a driver" run twin
  refuses 2 "no policy 'nolder/x.lua'" nolder/x.lua -p hello
}
it_completes_names_of_models_where_a_policy_may_stand() {
  succeeds complete mini-t
  grep -q '^mini-target' stdout || fail 'no model'
  succeeds complete chat mini-t
  grep -q '^mini-target' stdout || fail 'no model of a chat'
  succeeds complete mini-target lin
  grep -q '^linear' stdout || fail 'no policy after a model'
}
it_answers_commands_of_other_programs() {
  succeeds ls
  mv stdout expected
  for word in list models; do
    succeeds $word
    same_text expected stdout
  done
  succeeds ps
  [ "$(wc -l <stdout)" -eq 1 ] && grep -q '^no model stays loaded: .*dtrun serve' stdout || fail "ps: $(cat stdout)"
  refuses 2 "ps 'x': unexpected argument: ps takes none" ps x
  succeeds --version
  mv stdout expected
  succeeds version
  same_text expected stdout
}

run_tests
