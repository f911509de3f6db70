#!/usr/bin/env bash
# An installed dtrun finds its policies, models and drivers beside itself: install.sh DTRUN SOURCE BUILD
. "$(dirname "$0")/helpers.sh"
build_dir=$(realpath "$3")

install_here() { cmake --install "$build_dir" --prefix "$PWD/$1" >install.log 2>&1 || { cat install.log; fail 'cmake --install'; }; }

it_works_from_a_prefix_that_was_moved() {
  install_here first
  mv first second
  # Found nowhere but in the prefix, which is how we know that it is looked through.
  sed 's/name *= *"linear"/name = "marker"/' "$source_dir/policies/linear.lua" >second/share/dtrun/policies/marker.lua
  mkdir elsewhere
  dtrun=$PWD/second/bin/dtrun
  cd elsewhere || exit 1
  succeeds marker --text 'It was a dark night' -n 30 --json r.json
  grep -qE "\"target\":[[:space:]]*\"$(realpath ..)/second/share/dtrun/models/mini-target\"" r.json || fail 'a target from elsewhere'
  mv stdout expected
  succeeds ar --text 'It was a dark night' -n 30
  same_text expected stdout
  succeeds --list
  grep -q '^  marker ' stdout || fail 'no marker in the list'
}
it_has_the_prompts_of_the_papers() {
  install_here here
  dtrun=$PWD/here/bin/dtrun
  succeeds run paper ablation --quick --out x.jsonl
  [ "$(wc -l <x.jsonl)" -eq 8 ] || fail 'not every run was made'
}
it_uses_the_policies_of_a_clone_that_was_moved_and_not_those_of_where_it_was_built() {
  mkdir -p clone/build clone/lua/dt clone/policies
  cp "$dtrun" clone/build/
  ln -s "$models" clone/models
  sed 's/name *= *"linear"/name = "mine"/' "$source_dir/policies/linear.lua" >clone/policies/mine.lua
  mv clone moved
  dtrun=$PWD/moved/build/dtrun
  succeeds mine --text 'It was a dark night' -n 5 --json r.json
  grep -qE "\"target\":[[:space:]]*\"$PWD/moved/models/mini-target\"" r.json || fail 'a target from elsewhere'
  refuses 2 "no policy 'linear'; installed: mine( \(.*)?$" linear --text hello
}
it_runs_the_c_example_of_the_guide_from_anywhere() {
  install_here first
  mv first second
  mkdir elsewhere
  cd elsewhere || exit 1
  unset LD_LIBRARY_PATH
  export PKG_CONFIG_PATH=$PWD/../second/lib/pkgconfig
  awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$source_dir/README.md" >hello.c
  eval "$(sed -n '1s:^/\* hello.c\: \(cc .*\) && ./a.out \*/$:\1:p' hello.c) -Wall -Werror" || fail 'the example does not compile'
  run ./a.out
  [ "$status" -eq 0 ] || fail "the example: exit status $status: $(cat stdout)"
  grep -qE '^cpu:[a-z0-9]+, [0-9]+ threads$' stdout || fail "what the example says: $(cat stdout)"
  run env DTRUN_TARGET=nowhere ./a.out
  [ "$status" -eq 1 ] && grep -q nowhere stdout || fail "DTRUN_TARGET is not looked at: $(cat stdout)"
}
it_finds_files_in_DTRUN_HOME_first() {
  mkdir -p home/policies
  sed 's/doc *= *"[^"]*"/doc = "my own"/' "$source_dir/policies/linear.lua" >home/policies/linear.lua
  DTRUN_HOME=$PWD/home succeeds linear --help
  grep -q 'my own' stdout || fail 'not the policy of DTRUN_HOME'
  DTRUN_HOME=$PWD/home succeeds ar --text hello -n 3
}

run_tests
