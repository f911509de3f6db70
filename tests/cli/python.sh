#!/usr/bin/env bash
# The Python module: with the library from the build folder, as its guide shows it, and as a wheel: python.sh DTRUN SOURCE BUILD
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
it_brings_models_by_their_names() {
  make_home
  cat >load.py <<'PY'
import sys, dtrun
try:
    dtrun.load(sys.argv[1])
except dtrun.Error as error:
    print(error)
PY
  local python
  python=$(python3 -c 'import sys; print(sys.executable)')
  without_dtrun() { PATH=none DTRUN_LIBRARY=$build_dir/libdtrun.so PYTHONPATH=$source_dir/scripts/python "$python" "$@"; }
  says() {
    without_dtrun load.py "$2" >stdout 2>stderr || fail "$2: $(cat stderr)"
    grep -qE "$1" stdout || fail "$2: $(cat stdout)"
  }
  refuses_pull() {
    status=0
    without_dtrun -m dtrun "${@:2}" >stdout 2>stderr || status=$?
    [ "$status" -ne 0 ] && [ "$(wc -l <stderr)" -eq 1 ] && grep -qE "$1" stderr || fail "${*:2}: status $status, $(cat stderr)"
  }
  says '^toy is not here: python -m dtrun pull toy downloads it$' toy
  says "^no model 'toi': did you mean toy\\? python -m dtrun pull NAME downloads others$" toi
  says 'hf download o/n \(of the package huggingface_hub\) downloads it$' o/n
  says "hf download o/n --include '\\*Q4_0\\*' " o/n:Q4_0
  from_source -m dtrun pull toy >stdout 2>stderr || fail "pull: $(cat stderr)"
  [ "$(<stdout)" = "$PWD/home/models/toy.gguf" ] && same_text wheels/llm_toy/toy.gguf home/models/toy.gguf || fail "pull: $(cat stdout)"
  says 'home/models/toy.gguf' toy # it is not a model, but it is here
  refuses_pull '^usage: python -m dtrun pull NAME' list
  refuses_pull "no model 'toi': pull knows toy" pull toi
  refuses_pull 'pull: o/n is on Hugging Face: hf download o/n' pull o/n
  sed -i 's/ 6 [0-9a-f]*$/ 6 00/' home/models/pull.txt
  rm home/models/toy.gguf
  from_source -c 'import dtrun; dtrun.pull("toy")' >stdout 2>stderr && fail 'another file than expected, and no error'
  grep -q 'does not contain the expected file' stderr && grep -q 'Error: pull: toy could not be downloaded' stderr || fail "$(cat stderr)"
}
it_does_what_the_guide_shows() {
  awk '/^```python$/ { on = 1; n++; next } /^```$/ { on = 0 } on { print > ("example" n ".py") }' "$source_dir/scripts/python/README.md"
  [ -s example1.py ] || fail 'no python in the guide'
  for example in example*.py; do
    from_source "$example" >stdout || fail "$example"
    [ -s stdout ] || fail "$example prints nothing"
  done
}
# A stand-in for PyTorch in which tensors are names, so that the code around it can be tested.
write_torch() {
  mkdir -p torch safetensors
  echo 'class Tensor:
    dtype, shape = "torch.float16", [1]
    def contiguous(self): return self
    clone = contiguous
def load(path, map_location, weights_only): return {name: Tensor() for name in open(path).read().split()}' >torch/__init__.py
  : >safetensors/__init__.py
  echo 'def save_file(tensors, path): open(path, "w").write(" ".join(tensors))' >safetensors/torch.py
}
# norm_in HEAD: prints the final norm that its config.json names
norm_in() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/config.json"))["dtrun_target"]["final_norm"])' "$1"; }
it_names_the_target_of_a_head() {
  local training=$source_dir/scripts/training expected
  expected=$(norm_in "$models/mini-head")
  mkdir -p here pickle
  ln -s "$models/mini-target" here/target
  cp -r "$models/mini-head" here/head
  python3 - "$models/mini-head/config.json" here/head/config.json <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))
del config["dtrun_target"]
json.dump(config, open(sys.argv[2], "w"))
PY
  succeeds rate -m here/target -p 'It was' -n 5 -v
  grep -q 'here/head, found' stderr && fail 'found, though it names no target'
  from_source "$training/name_target.py" here/head here/target || fail 'name_target.py'
  [ "$(norm_in here/head)" = "$expected" ] || fail 'another norm'
  succeeds rate -m here/target -p 'It was' -n 5 -v
  grep -q 'draft: here/head, found' stderr || fail "not found: $(cat stderr)"
  refuses_python() {
    run env DTRUN_LIBRARY="$build_dir/libdtrun.so" PYTHONPATH="$PWD" python3 "${@:2}"
    [ "$status" -eq 1 ] || fail "${*:2}: exit status $status"
    [ "$(wc -l <stderr)" -eq 1 ] || fail "${*:2}: not one line: $(cat stderr)"
    grep -qE "$1" stderr || fail "${*:2}: no '$1' in $(cat stderr)"
  }
  refuses_python 'name_target: no such folder: nowhere' "$training/name_target.py" here/head nowhere
  refuses_python 'nowhere/config.json: .*expected a head' "$training/name_target.py" nowhere here/target
  refuses_python 'usage: name_target.py HEAD TARGET' "$training/name_target.py" here/head
  [ "$(norm_in here/head)" = "$expected" ] || fail 'a refusal writes'
  write_torch
  echo fc.weight >pickle/pytorch_model.bin
  echo '{"model_type": "llama"}' >pickle/config.json
  refuses_python 'usage: convert_head.py' "$training/convert_head.py" pickle converted --goal here/target
  refuses_python 'name_target: no such folder: nowhere' "$training/convert_head.py" pickle converted --target nowhere
  [ -e converted ] && fail 'written for a target that is not there'
  run env DTRUN_LIBRARY="$build_dir/libdtrun.so" PYTHONPATH="$PWD" python3 "$training/convert_head.py" pickle converted --target here/target
  [ "$status" -eq 0 ] || fail "convert_head.py: $(cat stderr)"
  [ "$(norm_in converted)" = "$expected" ] && grep -q llama converted/config.json || fail 'what was converted does not name its target'
  run env PYTHONPATH="$PWD" python3 "$training/convert_head.py" pickle plain
  [ "$status" -eq 0 ] && cmp -s pickle/config.json plain/config.json || fail 'without a target config.json is another'
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
  python3 -m zipfile -l "$(cat stdout)" >listed
  for name in mini-target mini-draft mini-head smollm2-head; do
    for file in config.json model.safetensors; do
      grep -q "dtrun/share/dtrun/models/$name/$file" listed || fail "the wheel has no $name/$file"
    done
  done
  has_links venv/lib/python3.*/site-packages/dtrun/share/dtrun
  grep -q dtrun/share/dtrun/scripts/get-model listed || fail 'the wheel cannot bring models'
  run venv/bin/python -m dtrun pull smolm2
  [ "$status" -eq 2 ] && grep -q "^dtrun: no model 'smolm2': pull knows smollm2" stderr || fail "pull in the wheel: $(cat stderr)"
  cat >program.py <<'PY'
import dtrun
pair = dtrun.load()
assert "site-packages" in dtrun.__file__ and "site-packages" in pair.target["path"]
print(pair.generate("It was a dark night", policy="linear", tokens=20)["text"], end="")
PY
  succeeds ar -p 'It was a dark night' -n 20
  mv stdout expected
  : >file # a home below a file cannot be created, not even by root
  run env -i HOME="$PWD/file/home" venv/bin/python program.py
  [ "$status" -eq 0 ] || fail "exit status $status"
  same_text expected stdout
}

run_tests
