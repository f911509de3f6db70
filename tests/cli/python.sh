#!/usr/bin/env bash
# The Python module: over the library as it was built, as README.md shows it, and as a wheel: python.sh DTRUN SOURCE BUILD
. "$(dirname "$0")/helpers.sh"
build_dir=$(realpath "$3")
export PYTHONDONTWRITEBYTECODE=1

from_source() { DTRUN_LIBRARY=$build_dir/libdtrun.so PYTHONPATH=$source_dir/scripts/python python3 "$@"; }

it_gives_what_the_program_gives() {
  succeeds linear -p 'It was a dark night' -n 30 --seed 7 --temp 0.8 --json r.json
  from_source "$source_dir/tests/cli/python_module.py" r.json || fail 'python_module.py'
}
it_ends_at_a_signal_and_says_so_where_it_cannot_be_used() {
  from_source "$source_dir/tests/cli/python_signals.py" || fail 'python_signals.py'
}
it_refuses_what_is_wrong_in_one_line_and_knows_other_names() {
  from_source "$source_dir/tests/cli/python_options.py" || fail 'python_options.py'
}
it_does_what_the_readme_shows() {
  awk '/^```python$/ { on = 1; n++; next } /^```$/ { on = 0 } on { print > ("example" n ".py") }' "$source_dir/README.md"
  [ -s example1.py ] || fail 'no python in README.md'
  for example in example*.py; do
    from_source "$example" >stdout || fail "$example"
    [ -s stdout ] || fail "$example prints nothing"
  done
}
it_is_a_wheel_that_needs_nothing_else() {
  [ "$build_dir" = "$source_dir/build" ] || { echo '  skipped: scripts/wheel packs build/'; return 0; }
  "$source_dir/scripts/wheel" dist >stdout || fail 'scripts/wheel'
  python3 -m venv --without-pip venv
  python3 -m zipfile -e "$(cat stdout)" venv/lib/python3.*/site-packages || fail 'no zip file'
  python3 - "$(cat stdout)" <<'PY' || fail 'the RECORD is wrong'
import base64, hashlib, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
listed = dict(line.split(",")[:2] for line in wheel.read(record).decode().splitlines())
assert set(listed) == set(wheel.namelist())
for name, digest in listed.items():
    data = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
    assert name == record or digest == "sha256=" + data, name
PY
  cat >program.py <<'PY'
import dtrun
pair = dtrun.load()
assert "site-packages" in dtrun.__file__ and "site-packages" in pair.target["path"]
print(pair.generate("It was a dark night", policy="linear", tokens=20)["text"], end="")
PY
  succeeds ar -p 'It was a dark night' -n 20
  mv stdout expected
  : >file # a home in a file cannot be made, by root neither
  run env -i HOME="$PWD/file/home" venv/bin/python program.py
  [ "$status" -eq 0 ] || fail "exit status $status"
  same_text expected stdout
}

run_tests
