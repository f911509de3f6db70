#!/usr/bin/env bash
# Checks the rules of the source tree: who may include whom (runtime/README.md draws it), the size of files, formatters
# and linters.
. "$(dirname "$0")/cli/helpers.sh"
cd "$source_dir" || exit 1
dtrun_headers='dtrun(_fake|_ranks)?\.h|tree/tree\.h|system/(status|need|digest|hash|os|asprintf)\.h|model/gguf_name\.h'

# none WHAT: reads places that break a rule from standard input; there must be none
none() {
  local found
  found=$(cat)
  [ -z "$found" ] || { echo "$found" | sed 's/^/  /'; fail "$1"; }
}
includes() { grep -srnE --include='*.[ch]' --include='*.cu' --include='*.cuh' "^ *# *include *[<\"]($1)[>\"]" "${@:2}"; }
sources() { find runtime lua cuda tests policies scripts -type f "$@" 2>/dev/null; }

it_keeps_Lua_headers_in_lua() {
  cd "$source_dir" && includes '(lua5.4/)?(lua|lauxlib|lualib|luaconf)\.h' runtime cuda tests | none 'Lua headers are included outside lua/'
}
it_lets_lua_know_only_the_public_header_and_the_tree() {
  cd "$source_dir" || exit 1
  includes '.*' lua | grep -vE "^lua/cli/|\"($dtrun_headers)\"|<" | while IFS= read -r line; do
    name=${line#*\"}
    [ -e "lua/${name%\"*}" ] || echo "$line"
  done | none 'lua/ includes internal headers of the runtime'
}
it_lets_the_command_line_know_only_the_host_and_the_public_header() {
  cd "$source_dir" || exit 1
  includes '.*' lua/cli | grep -vE '"(cli/[a-z_]+|request/[a-z_]+|host|dtrun|dtrun_ranks|serve/serve|system/(json_file|os|asprintf)|text/utf8)\.h"|<' | none 'the command line includes internal headers of the engine'
}
it_lets_the_server_know_only_the_host() {
  cd "$source_dir" || exit 1
  includes '.*' lua/serve | grep -vE '"(serve/[a-z_]+|request/[a-z_]+|host|files/json_text|system/os)\.h"|<' | none 'the server includes internal headers of the host' || exit 1
  includes 'microhttpd\.h' runtime lua cuda | grep -v '^lua/serve/http\.c' | none 'a file other than lua/serve/http.c includes microhttpd.h'
}
it_keeps_the_engine_ignorant_of_who_uses_it() {
  cd "$source_dir" || exit 1
  includes '((cli|serve|driver|request|generate|box|measure|lookup|models|files)/.*|host\.h)' runtime cuda | none 'the engine includes headers of its users'
}
# From the bottom up: each folder may include those listed before it. A header in the list is what the folders below it
# offer to those above.
floors='runtime/system runtime/template runtime/model runtime/text runtime/grammar runtime/chat runtime/backend runtime/tree runtime/dtrun.h runtime/fake runtime/dtrun_fake.h
  runtime/dtrun_ranks.h runtime/cpu runtime/split runtime/ranks runtime/pair runtime/draft runtime/session lua/host.h lua/files lua/models lua/lookup
  lua/measure lua/box lua/generate lua/request lua/driver lua/serve lua/cli'
it_includes_downwards_only() {
  cd "$source_dir" || exit 1
  local floor other above
  # shellcheck disable=SC2086 # words
  above=" $(echo $floors) "
  for floor in $floors; do
    [ -e "$floor" ] || fail "no $floor"
    above=${above#" $floor"}
    for other in $above; do
      [[ $other = *.h ]] || other+='/.*'
      includes "${other#*/}" "$floor"
    done
  done | none 'a file includes a header from a higher floor'
  find runtime lua -mindepth 1 -maxdepth 1 | while read -r name; do
    [[ " $floors runtime/pull runtime/installed.h lua/dt " =~ [[:space:]]${name}[[:space:]] || ! $name =~ \.[ch]$ && ! -d $name ]] || echo "$name"
  done | none 'a file or folder is not on the list of floors'
  for floor in files models lookup measure request; do includes '(lua5.4/)?(lua|lauxlib|lualib|luaconf)\.h' "lua/$floor"; done | none 'a folder that must not use Lua includes its headers'
}
# Prints the symbols of the program's C files, by nm: FILE NAME TYPE ...
symbols() {
  local build objects
  build=$(dirname "$dtrun")
  mapfile -t objects < <(cd "$build" && find CMakeFiles/dtrun_{runtime,cli,server}.dir lua/CMakeFiles runtime/cpu/CMakeFiles -name '*.c.o' | while read -r object; do
    file=${object/lua\/CMakeFiles\/dtrun_lua.dir/lua}
    file=$(sed -E 's#CMakeFiles/dtrun_[a-z0-9_]*\.dir/?##' <<<"$file")
    [ -e "$source_dir/${file%.o}" ] && echo "$object"
  done)
  [ ${#objects[@]} -gt 150 ] || fail "${#objects[@]} objects"
  (cd "$build" && nm -A --format=posix "${objects[@]}") | sed -E 's#^(lua/|runtime/cpu/)?CMakeFiles/[a-z0-9_]*\.dir/#\1#; s#\.o:##'
}
# Files can be sorted so that each comes after those that it calls: there is no cycle.
it_calls_in_no_circle() {
  symbols | awk '$3 ~ /^[TDBRC]$/ { home[$2] = $1 } $3 == "U" { user[NR] = $1; used[NR] = $2 }
      END { for (i in user) if (home[used[i]] && home[used[i]] != user[i]) print user[i], home[used[i]] }' | sort -u | tsort 2>&1 >/dev/null |
    sed 's/^tsort: //' | none 'files call each other in a cycle'
}
it_gives_a_function_that_others_call_a_name_of_its_own() {
  grep -rhoE --include='*.c' '^static [a-z][^=;(]*\(' "$source_dir"/{runtime,lua} | sed -E 's/.*[ *]([a-z0-9_]+)\($/\1/' | sort -u >own
  symbols | awk '$3 == "T" { print $2 }' | sort -u | comm -12 own - | none 'a static function has the same name as a function of another file'
}
it_keeps_pulling_by_itself() {
  cd "$source_dir" || exit 1
  includes '.*' runtime/pull | grep -vE '"(pull/[a-z_]+|system/(status|json_file|os)|model/gguf_name)\.h"|<' | none 'runtime/pull includes headers of other parts' || exit 1
  includes '(pull|curl|openssl)/.*' runtime lua cuda | grep -v '^runtime/pull/' | none 'a file outside runtime/pull includes networking headers'
}
it_keeps_backends_ignorant_of_trees_sessions_and_policies() {
  cd "$source_dir" || exit 1
  includes '(.*/)?(tree|session|dtrun|accept|kv|model|pair|pass|draft|host)\.h' runtime/cpu runtime/fake cuda | none 'a backend includes headers of trees, sessions or policies' || exit 1
  includes '(.*/)?(fake|cuda)/.*' runtime/cpu | none 'the CPU backend includes headers of another backend'
}
it_keeps_drafters_ignorant_of_sessions() {
  cd "$source_dir" || exit 1
  includes '(.*/)?session(_impl)?\.h' runtime/draft | none 'a drafter includes headers of the session'
}
it_keeps_tree_accept_and_kv_pure() {
  cd "$source_dir" || exit 1
  includes '(.*/)?(backend|session|model|pair)\.h|stdio\.h' runtime/tree runtime/backend/kv.[ch] | none 'tree/, accept or kv includes a backend, a session, a model or stdio.h'
}
it_lets_text_know_no_model_but_the_files_that_hold_tokenizers() {
  cd "$source_dir" || exit 1
  includes '(.*/)?(weights|model|config|safetensors|types|backend|session|pair|dtrun)\.h' runtime/text | none 'text/ includes more of the model than model/gguf.h'
}
# code PATTERN FILES...: prints lines of C that match, without comments
code() { grep -snE "$1" "${@:2}" | grep -vE '^[^:]*:[0-9]+: *(/\*|\*|//)' | sed -E 's://.*|/\*.*\*/::' | grep -E "$1"; }

it_tells_families_apart_in_their_own_files_only() {
  cd "$source_dir" || exit 1
  local names
  names=$(sed -E ':a; /\\$/ { N; s/\\\n//; ta }' runtime/model/families.c | sed -nE 's/^#define FAMILIES\(F\) *//p' | grep -oE '\([a-z0-9_]+\)' | tr -d '()' | paste -sd '|')
  [ -n "$names" ] || fail 'no list of families in runtime/model/families.c'
  code "\\b($names|gptneox)\\b([^-]|$)" runtime/*.[ch] runtime/{system,grammar,backend,tree,pair,draft,session,cpu,fake,pull}/*.[ch] cuda/*.cu* lua/*/*.[ch] \
    $(grep -LE '^const family ' runtime/model/*.[ch]) | grep -vE '^runtime/model/families\.c:[0-9]+:(#define FAMILIES| *F\()' | none 'a family is named outside its own file'
}
it_tells_weight_types_apart_in_their_table_and_the_formats_only() {
  cd "$source_dir" || exit 1
  local names
  names=$(sed -nE 's/^ *T\(([A-Z0-9_]+),.*/DT_\1/p' runtime/model/types.h | paste -sd '|')
  [ -n "$names" ] || fail 'no list of types in runtime/model/types.h'
  code "\\b($names)\\b" runtime/*.[ch] runtime/{system,grammar,backend,tree,pair,draft,session,fake,text}/*.[ch] lua/*/*.[ch] $(find runtime/model -name '*.[ch]' -not -name 'types*') \
    $(find runtime/cpu -name '*.[ch]' -not -name 'product_*' -not -name 'quant*') $(find cuda -name '*.cu*' -not -name 'format*') | none 'a weight type is named outside its table and the formats'
}
it_keeps_the_library_from_printing_and_aborting() {
  cd "$source_dir" || exit 1
  grep -nE '\b(printf|puts|putchar|perror|abort|exit) *\(|fprintf *\(std' runtime/*.[ch] runtime/{system,template,grammar,backend,tree,pair,draft,session,cpu,split,fake,model,ranks,text}/*.[ch] |
    grep -vE '^[^:]*:[0-9]*: *(/?\*|//)' | none 'the library prints or ends the process'
}
# A call that can fail returns a dt_status. Exceptions: the outcome of http_get, keys whose reading fails later, and
# functions that look up or create something and return NULL on failure.
it_fails_in_one_way() {
  cd "$source_dir" || exit 1
  find runtime lua cuda -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | while IFS= read -r file; do
    awk -v file="$file" 'BEGIN { RS = "\0" } {
      gsub(/\n +/, " ")
      n = split($0, line, "\n")
      for (i = 1; i <= n; i++)
        if (line[i] ~ /^[a-z][a-z_ ]*[ *][a-z0-9_]+\([^{};]*[(,] *dt_error \*err\)/ &&
            line[i] !~ /^(static |inline )*(dt_status |http_outcome |keys |void \*|const (dt_backend_ops|cpu_kernels) \*)/)
          print file ": " substr(line[i], 1, index(line[i], "(") - 1)
    }' "$file"
  done | none 'a function that fills a dt_error does not return a dt_status'
}
it_lets_policies_require_only_the_policy_module() {
  cd "$source_dir" && grep -rnE --include='*.lua' '\brequire\b' policies | grep -vE 'require *\(?"dt\.policy"\)?' | none 'a policy requires a module other than dt.policy'
}

# The folders of lua/dt, the lowest floor first. A module may require modules of its own folder and of lower floors.
# core is what C offers to drivers (dt.core); dt is the files in lua/dt itself.
lua_floors=(policy core api 'draw record drafts' 'report trace experiment' bench dt)

# folder_of NAME: prints the folder that holds the module of that name (lua/embed.cmake), or nothing if there is none
folder_of() {
  local file
  case $1 in
    dt | dt.bridge) echo dt ;;
    dt.core) echo core ;;
    dt.*.*_css | dt.*.*_js) file=lua/${1//.//}; [ -e "${file%_*}.${file##*_}" ] && basename "$(dirname "$file")" ;;
    dt.*.*) file=lua/${1//.//}.lua; [ -e "$file" ] && basename "$(dirname "$file")" ;;
    dt.*) for file in lua/dt/"${1#dt.}"/init.lua lua/dt/*/"${1#dt.}".lua; do [ -e "$file" ] && basename "$(dirname "$file")"; done ;;
  esac
}
it_lets_modules_in_Lua_require_downwards() {
  cd "$source_dir" || exit 1
  local -A floor
  local level=0 folders folder
  for folders in "${lua_floors[@]}"; do
    level=$((level + 1))
    for folder in $folders; do floor[$folder]=$level; done
  done
  find lua/dt -name '*.lua' | while IFS= read -r file; do
    from=$(basename "$(dirname "$file")")
    [ -n "${floor[$from]:-}" ] || echo "$file: its folder is not in lua_floors"
    grep -noE "\brequire *\(?[\"'][^\"']*" "$file" | while IFS=: read -r line name; do
      name=${name##*[\"\']} to=$(folder_of "$name")
      [ "$from" = "$to" ] || [ "${floor[${to:-none}]:-9}" -lt "${floor[$from]:-0}" ] || echo "$file:$line: $name"
    done
  done | none 'a module requires one that is not on a lower floor of lua/dt'
}
it_lets_drivers_require_only_the_faces_of_modules() {
  cd "$source_dir" || exit 1
  grep -rnE --include='*.lua' "\brequire *\(?[\"']dt\.[a-z_]+\." scripts | none 'a driver requires an internal module of lua/dt'
}
it_keeps_what_is_installed_out_of_tests() {
  cd "$source_dir" && grep -rnE --include='*.lua' --include='*.cmake' '\btests/' policies scripts lua | none 'an installed file refers to tests/'
}
it_cites_only_pages_that_are_there() {
  cd "$source_dir" || exit 1
  grep -rnoE --include='*.[ch]' --include='*.cu' --include='*.cuh' \
    '[A-Za-z0-9_/-]+\.md\b' runtime lua cuda tests policies scripts | while IFS=: read -r file line page; do
    [ -e "$page" ] || [ -e "$(dirname "$file")/$page" ] || echo "$file:$line: $page"
  done | none 'a comment names a guide that does not exist'
}
it_draws_a_map_of_files_that_are_there() {
  cd "$source_dir" || exit 1
  grep -oE '`[a-z_/]+(/|\.[a-z]+)`' runtime/README.md | tr -d '`' | while read -r name; do
    [ -n "$(find "$name" runtime/"$name" lua/"$name" runtime/model/"$name" runtime/text/"$name" lua/box/"$name" lua/generate/"$name" lua/cli/"$name" -maxdepth 0 2>/dev/null)" ] || echo "$name"
  done | none 'runtime/README.md names files that do not exist'
}
it_keeps_guides_short_and_their_links_whole() {
  "$dtrun" run "$source_dir/tests/guide/check_guides.lua" "$source_dir" || fail 'guides'
}
it_counts_ids_for_draft_vocabularies_in_the_same_pages_everywhere() {
  cd "$source_dir" || exit 1
  diff <(grep -oE 'policies/[A-Z]+\.md' lua/models/draft_vocab.c | sort) \
    <(sed -n 's/.*ipairs { \(.*"README".*\) } do/\1/p' scripts/vocab.lua | grep -oE '[A-Z]+' | sed 's|.*|policies/&.md|' | sort) |
    none 'scripts/vocab.lua and lua/models/draft_vocab.c list different pages'
}
it_keeps_files_short() {
  cd "$source_dir" || exit 1
  sources \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.lua' -o -name '*.sh' -o -name '*.py' \) -exec wc -l {} + |
    awk '$1 > 650 && $2 != "total" { print $2 ": " $1 " lines" }' | none 'files have more than 650 lines'
}
it_keeps_lines_within_120_columns() {
  cd "$source_dir" || exit 1
  sources \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.lua' \) -not -path 'tests/golden/*' |
    LC_ALL=C.UTF-8 xargs grep -nE '.{121}' | cut -c1-160 | none 'lines have more than 120 columns'
}
it_is_formatted() {
  cd "$source_dir" || exit 1
  clang-format --version 2>/dev/null | grep -q 'version 14\.' || { echo '  skipped: clang-format 14 is not installed'; return 0; }
  sources \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' \) -not -path 'tests/golden/*' |
    xargs clang-format --dry-run -Werror 2>&1 | head -20 | none 'files are not formatted; run clang-format -i'
}
it_is_clean_Lua() {
  cd "$source_dir" || exit 1
  command -v luacheck >/dev/null || { echo '  skipped: luacheck is not installed'; return 0; }
  luacheck -q --no-color lua policies scripts tests || fail 'luacheck'
}
it_is_clean_bash() {
  cd "$source_dir" || exit 1
  local scripts
  mapfile -t scripts < <(grep -lsIE -m1 '^#!.*\b(ba)?sh$' -r .ci .githooks scripts tests)
  [ ${#scripts[@]} -gt 20 ] || fail "found only ${#scripts[@]} scripts"
  for script in "${scripts[@]}"; do [ -x "$script" ] || echo "$script"; done | none 'scripts are not executable'
  command -v shellcheck >/dev/null || { echo '  skipped: shellcheck is not installed'; return 0; }
  shellcheck -S warning -f gcc "${scripts[@]}" | none 'shellcheck'
}

# Reads patterns, one per line, and prints those that match no test, except those for tests that not every machine has.
fit_no_test() {
  local names pattern
  names=$(ctest --test-dir "$(dirname "$dtrun")" -N | sed -nE 's/^ *Test +#[0-9]+: //p')
  [ -n "$names" ] || fail 'ctest lists no test'
  while IFS= read -r pattern; do
    echo "$names" | grep -qxE "$(sed 's/\./\\./g; s/\*/.*/g' <<<"$pattern")" || echo "$pattern"
  done | grep -vE 'slurm|cuda|gpu|browser|ranks'
}
it_sorts_into_tiers_tests_that_there_are() {
  sed -n 's/^\([a-z][^ ]*\) .*/\1/p' "$source_dir/tests/tiers.txt" | fit_no_test | none 'tests/tiers.txt names tests that do not exist'
}
it_calls_for_tests_of_files_that_are_there() {
  cd "$source_dir" || exit 1
  local pattern
  grep '^[^#]' tests/needs_full.txt | while read -r pattern _; do
    compgen -G "$pattern" >/dev/null || echo "$pattern"
  done | none 'tests/needs_full.txt names files that do not exist'
  grep '^[^#]' tests/needs_full.txt | tr -s ' ' '\n' | grep -v / | sort -u | grep -v '\.md$' | fit_no_test | none 'tests/needs_full.txt names tests that do not exist'
}
it_calls_for_the_full_tiers_tests_of_changed_files() {
  mkdir -p clone/tests clone/cuda clone/policies && cp "$source_dir"/tests/needs_full.{sh,txt} clone/tests/
  cd clone || exit 1
  commit() { git add . && git -c user.name=x -c user.email=x@y.z commit -qm x; }
  called() { [ "$(tests/needs_full.sh "${@:2}")" = "$1" ] || fail "expected '$1', found '$(tests/needs_full.sh "${@:2}")'"; }
  git init -q -b main . && commit
  called '' 2>said
  grep -q 'no commit HEAD~1 in this clone to compare with' said || fail 'a clone of one commit'
  touch policies/x.lua && commit
  called ''
  touch cuda/x.cu runtime.c && commit
  called '^(cli\.cuda|cuda\..*|gpu\..*|unit\.test_cuda_.*)$'
  touch policies/y.lua && commit
  called '' && called '^(cli\.cuda|cuda\..*|gpu\..*|unit\.test_cuda_.*)$' HEAD~2
  git update-ref refs/remotes/origin/main HEAD~2
  called '^(cli\.cuda|cuda\..*|gpu\..*|unit\.test_cuda_.*)$'
}

run_tests
