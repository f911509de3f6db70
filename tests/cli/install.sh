#!/usr/bin/env bash
# An installed dtrun finds its policies, models and drivers relative to itself: install.sh DTRUN SOURCE BUILD
. "$(dirname "$0")/helpers.sh"
build_dir=$(realpath "$3")

install_here() { cmake --install "$build_dir" --prefix "$PWD/$1" >install.log 2>&1 || { cat install.log; fail 'cmake --install'; }; }

it_works_from_a_prefix_that_was_moved() {
  install_here first
  mv first second
  # It exists only in the prefix, so finding it shows that the prefix is searched.
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
  awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$source_dir/runtime/LIBRARY.md" >hello.c
  eval "$(sed -n '1s:^/\* hello.c\: \(cc .*\) && ./a.out \*/$:\1:p' hello.c) -Wall -Werror" || fail 'the example does not compile'
  run ./a.out
  [ "$status" -eq 0 ] || fail "the example: exit status $status: $(cat stdout)"
  grep -qE '^cpu:[a-z0-9]+, [0-9]+ threads$' stdout || fail "what the example says: $(cat stdout)"
  run env DTRUN_TARGET=nowhere ./a.out
  [ "$status" -eq 1 ] && grep -q nowhere stdout || fail "DTRUN_TARGET is not looked at: $(cat stdout)"
}
it_shares_what_passes_cost_with_python_and_c() {
  install_here prefix
  export PKG_CONFIG_PATH=$PWD/prefix/lib/pkgconfig XDG_CACHE_HOME=$PWD/cache PYTHONDONTWRITEBYTECODE=1
  cat >costs.c <<'C'
#include <dtrun.h>
#include <stdio.h>
#include <string.h>

static void measures(void *user, int done, int total) { (void)user, printf("measured again: %d of %d\n", done, total); }
static void notes(void *user, const char *line) { (void)user, puts(line); }

int main(void) {
  dt_pair *pair;
  dtl_policy *policy;
  dtl_result result;
  dtl_costs costs;
  dt_error err;
  bool found;
  const dtl_prompt prompt = {.text = "The ship", .len = 8};
  const dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 8}};
  const dtl_cost_measuring table = {.context = 60, .progress = measures, .note = notes};
  if (dtl_load(&(dtl_load_options){.need = DTL_ANY_DRAFT, .how = {.threads = 1}}, &pair, &found, &err) ||
      dtl_policy_open(&(dtl_policy_options){.policy = "cast"}, &policy, &err) ||
      dtl_generate(pair, policy, &request, &result, &err) || dtl_measure_costs(pair, &table, &costs, &err))
    return puts(err.message), 1;
  puts(result.costs);
  dtl_result_free(&result), dtl_policy_close(policy), dt_pair_close(pair);
}
C
  cat >costs.py <<'PY'
import dtrun
pair = dtrun.load(threads=1, ctx=60)
for costs in "learn", "table":
    assert pair.generate("The ship", policy="cast", tokens=8, costs=costs)["costs"] == costs
PY
  # shellcheck disable=SC2046
  cc costs.c -Wall -Wextra -Werror $(pkg-config --cflags --libs dtrun) || fail 'the C program does not compile'
  dtrun=$PWD/prefix/bin/dtrun
  local cast=(cast -p 'The ship' -n 8 -c 60 -t 1 -q) learned table
  succeeds "${cast[@]}"
  succeeds "${cast[@]}" --costs table
  learned=$(echo cache/dtrun/learned-*.json) table=$(echo cache/dtrun/costs-*.json)
  cp "$table" first
  # If one of them lost the file or started a new one, this pass of 257 rows, which none of them makes, would be missing.
  sed -i 's/"target":\[/&[257,128,12.345,8],/' "$learned"
  for _ in 1 2; do
    for costs in learn table; do
      succeeds "${cast[@]}" --costs $costs
      [ -s stderr ] && fail "the program says: $(cat stderr)"
    done
    run env DTRUN_LIBRARY="$PWD/prefix/lib/libdtrun.so" PYTHONPATH="$source_dir/scripts/python" python3 costs.py
    [ "$status" -eq 0 ] && [ ! -s stderr ] || fail "Python says: $(cat stderr)"
    run ./a.out
    [ "$status" -eq 0 ] || fail "C: $(cat stdout)"
    [ "$(cat stdout)" = learn ] && [ ! -s stderr ] || fail "C says: $(cat stdout stderr)"
    grep -qE '\[257,128,12.3[0-9]*,8\]' "$learned" || fail 'what was learned is lost'
    cmp -s first "$table" || fail 'the table was measured again'
  done
  [ "$(find cache/dtrun -type f | wc -l)" -eq 3 ] || fail "not one file each: $(find cache/dtrun -type f)"
}
it_finds_files_in_DTRUN_HOME_first() {
  mkdir -p home/policies
  sed 's/doc *= *"[^"]*"/doc = "my own"/' "$source_dir/policies/linear.lua" >home/policies/linear.lua
  DTRUN_HOME=$PWD/home succeeds linear --help
  grep -q 'my own' stdout || fail 'not the policy of DTRUN_HOME'
  DTRUN_HOME=$PWD/home succeeds ar --text hello -n 3
}

run_tests
