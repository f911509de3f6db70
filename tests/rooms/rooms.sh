#!/usr/bin/env bash
# A synthetic family, weight type, rounding and CPU format join a copy of the tree by a file each and a line in a list each; the copy is
# built and tries them.   rooms.sh DTRUN SOURCE_DIR
. "$(dirname "$0")/../cli/helpers.sh"
rooms=$source_dir/tests/rooms

# line FILE PATTERN TEXT: puts the text after the one line that ends with the pattern; that line must exist
line() {
  [ "$(grep -cE "$2\$" "$1")" = 1 ] || fail "$1: no line, or several, ending in '$2'"
  sed -i -E "s/($2)\$/\1 $3/" "$1"
}

it_takes_what_is_new_by_a_file_and_a_line_each() {
  cp -r "$source_dir"/{CMakeLists.txt,LICENSE,README.md,runtime,lua,scripts} . || exit 1
  cp "$rooms/toy.c" "$rooms/types_toy.c" runtime/model
  cp "$rooms/product_toy.c" runtime/cpu
  line runtime/model/families.c '^  F\(.* F\(gpt_oss\).*' 'F(toy)'
  line runtime/model/types.h 'T\(MXFP4, .*\)' 'T(TOY, toy, 99, 16, 20)'
  line runtime/model/types.h '^#define DT_ROUND_LIST\(R\) .*' 'R(TOY, toy)'
  line runtime/cpu/format.h '^  F\(mxfp4_two\)' 'F(toy)'
  line runtime/cpu/format.h '^#define CPU_ASKED_LIST\(A\) .*' 'A(toy, TOY)'
  cat >>CMakeLists.txt <<CMAKE
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
add_executable(rooms $rooms/rooms.c)
target_include_directories(rooms PRIVATE $source_dir/tests/unit)
target_link_libraries(rooms PRIVATE dtrun_runtime PkgConfig::CMOCKA)
CMAKE
  cmake -S . -B build -DBUILD_TESTING=OFF -DKERNEL_OPTIMIZATION=-O1 >log 2>&1 &&
    cmake --build build --target rooms -j 2 >>log 2>&1 || { tail -30 log; fail 'the copy does not build'; }
  ! grep -q 'warning:' log || fail "$(grep 'warning:' log | head -5)"
  build/rooms 2>&1 || fail 'the synthetic ones do not work'
}

# A field of requests that the engine has and nobody can ask for: with its row, every front end takes it, and names it in its own way.
it_takes_a_field_by_its_row() {
  cp -r "$source_dir"/{CMakeLists.txt,LICENSE,README.md,runtime,lua,scripts,policies,models} . || exit 1
  line lua/request/fields.c 'FIELD_STOP, .*\},' '{"candidates", "--candidates", NULL, "candidates", FIELD_WHOLE, SEQ(candidates), SAMPLED, "N", "a synthetic field", NULL},'
  cmake -S . -B build -DBUILD_TESTING=OFF -DKERNEL_OPTIMIZATION=-O1 >log 2>&1 &&
    cmake --build build -j 2 >>log 2>&1 || { tail -30 log; fail 'the copy does not build'; }
  dtrun=$PWD/build/dtrun
  unset DTRUN_HOME
  succeeds ar -p hi -n 2 -q --candidates 3
  refuses 2 '--candidates: 99 is out of range: 0..32' ar -p hi -n 2 --candidates 99
  "$dtrun" --help | grep -q -- '--candidates N .*a synthetic field' || fail 'help lacks it'
  "$dtrun" complete --candi | grep -q -- '--candidates' || fail 'no completion'
  printf '/set candidates 99\n/exit\n' | "$dtrun" chat ar -m models/mini-target --template chatml -q 2>&1 | grep -q '/set candidates: 99 is out of range' || fail 'no /set'
  echo 'local dt = require "dt"
local pair <close> = assert(dt.load {})
assert(pair:generate { policy = "ar", prompt = "hi", tokens = 2, candidates = 3 })
print(select(2, pcall(pair.generate, pair, { policy = "ar", prompt = "hi", candidates = 99 })))' >drive.lua
  "$dtrun" run ./drive.lua | grep -q 'generate: candidates: 99 is out of range: 0..32' || fail 'drivers lack it'
  . "$source_dir/tests/cli/server.sh"
  serve
  curl -s "$url/v1/completions" -d '{"prompt": "a", "max_tokens": 1, "candidates": 99}' | grep -q 'candidates: 99 is out of range: 0..32' || fail 'no member of bodies'
}

run_tests
