#!/usr/bin/env bash
# The rules of the source tree: who may include whom (design.md, section 5), the size of files, formatters and linters.
. "$(dirname "$0")/cli/helpers.sh"
cd "$source_dir" || exit 1
dtrun_headers='dtrun\.h|tree\.h|status\.h'

# none WHAT: standard input, the places that break a rule, must be empty
none() {
  local found
  found=$(cat)
  [ -z "$found" ] || { echo "$found" | sed 's/^/  /'; fail "$1"; }
}
includes() { grep -srnE --include='*.[ch]' --include='*.cu' --include='*.cuh' "^ *# *include *[<\"]($1)[>\"]" "${@:2}"; }
sources() { find runtime lua cuda tests policies scripts -type f "$@" 2>/dev/null; }

it_keeps_Lua_headers_in_lua() {
  cd "$source_dir" && includes '(lua5.4/)?(lua|lauxlib|lualib|luaconf)\.h' runtime cuda tests | none 'a Lua header outside lua/'
}
it_lets_lua_know_only_the_public_header_and_the_tree() {
  cd "$source_dir" || exit 1
  for header in runtime/*.h runtime/*/*.h; do
    name=${header##*/}
    grep -qxE "$dtrun_headers" <<<"$name" || [ -e "lua/$name" ] || includes "(.*/)?${name/./\\.}" lua
  done | none 'a header of the runtime in lua/'
}
it_keeps_backends_ignorant_of_trees_sessions_and_policies() {
  cd "$source_dir" || exit 1
  includes '(.*/)?(tree|session|session_impl|dtrun|accept|kv|model|pair|pass|host)\.h' runtime/cpu runtime/fake cuda | none 'a backend knows too much' || exit 1
  includes '(.*/)?(fake|cuda)/.*' runtime/cpu | none 'the CPU backend knows another one'
}
it_keeps_tree_accept_and_kv_pure() {
  cd "$source_dir" || exit 1
  includes '(.*/)?(backend|session|model|pair)\.h|stdio\.h' runtime/tree.[ch] runtime/accept.[ch] runtime/kv.[ch] | none 'not pure'
}
it_keeps_the_library_from_printing_and_aborting() {
  cd "$source_dir" || exit 1
  grep -nE '\b(printf|puts|putchar|perror|abort|exit) *\(|fprintf *\(std' runtime/*.[ch] runtime/*/*.[ch] |
    grep -vE '^runtime/(main|cli|complain|several|report)\.c' | grep -vE '^[^:]*:[0-9]*: *(/?\*|//)' | none 'the library prints or ends the process'
}
it_lets_policies_require_only_the_policy_module() {
  cd "$source_dir" && grep -nE '\brequire\b' policies/*.lua | grep -vE 'require *\(?"dt\.policy(\.[a-z_]+)?"\)?' | none 'a policy requires something else'
}
it_keeps_files_short() {
  cd "$source_dir" || exit 1
  sources \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.lua' -o -name '*.sh' -o -name '*.py' \) -exec wc -l {} + |
    awk '$1 > 650 && $2 != "total" { print $2 ": " $1 " lines" }' | none 'files over 650 lines'
}
it_is_formatted() {
  cd "$source_dir" || exit 1
  clang-format --version 2>/dev/null | grep -q 'version 14\.' || { echo '  skipped: no clang-format 14'; return 0; }
  sources -name '*.[ch]' -not -path 'tests/golden/*' -print0 | xargs -0 clang-format --dry-run -Werror 2>&1 | head -20 | none 'clang-format -i mends it'
}
it_is_clean_Lua() {
  cd "$source_dir" || exit 1
  command -v luacheck >/dev/null || { echo '  skipped: no luacheck'; return 0; }
  luacheck -q --no-color lua policies scripts tests || fail 'luacheck'
}
it_is_clean_bash() {
  cd "$source_dir" || exit 1
  for script in scripts/quickstart scripts/test scripts/packages .ci/run $(sources -name '*.sh'); do
    bash -n "$script" 2>&1 || echo "$script"
    [ "$(head -c 2 "$script")" != '#!' ] || [ -x "$script" ] || echo "$script: not executable"
  done | none 'a script bash does not take'
}

run_tests
