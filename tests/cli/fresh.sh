#!/usr/bin/env bash
# A clone of this tree in which only scripts/quickstart has run can be installed, packed, and used from Python. It is built for minutes.
. "$(dirname "$0")/helpers.sh"

it_is_all_there_after_quickstart() {
  mkdir clone
  (cd "$source_dir" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - -f -) | tar -x -C clone || fail 'git ls-files'
  cd clone || exit 1
  run scripts/quickstart --no-model
  [ "$status" -eq 0 ] || fail "quickstart: exit status $status"
  grep -qE '^  The same text' stderr || fail 'no comparison'
  ls build/tests/test_* >made 2>&1 && fail "tests were built: $(head -1 made)"
  cmake --install build --prefix "$PWD/here" >log 2>&1 || { tail -5 log; fail 'cmake --install'; }
  here/bin/dtrun ar -p hello -n 3 >stdout 2>stderr || fail 'the installed program'
  [ -s here/share/man/man1/dtrun.1 ] && [ -e here/lib/libdtrun.so ] || fail 'no manual, or no library'
  if command -v dpkg-shlibdeps >/dev/null; then
    (cd build && cpack >../log 2>&1) || { tail -5 log; fail cpack; }
    ls build/*.deb >/dev/null || fail 'no package'
  fi
  PYTHONPATH=scripts/python python3 -c 'import dtrun; dtrun.load().generate("hello", policy="linear", tokens=3)' || fail Python
}

run_tests
