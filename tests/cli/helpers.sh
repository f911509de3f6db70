# Shared by the tests of the command line. Each is called with the path of dtrun and the repository's root; every function whose
# name begins with it_ is a test and runs by itself in an empty folder.
set -u
dtrun=$(realpath "$1")
source_dir=$(realpath "$2")
models=$source_dir/models
unset DTRUN_HOME DTRUN_TARGET DTRUN_DRAFT DTRUN_JOIN_SECONDS SLURM_ARRAY_TASK_ID

fail() {
  echo "  $*"
  [ -s stderr ] && sed 's/^/  stderr: /' stderr
  exit 1
}

# run COMMAND...: leaves its output in the files stdout and stderr, its exit status in $status
run() {
  status=0
  "$@" >stdout 2>stderr || status=$?
  sed -i '/^dtrun: loaded in [0-9.]* s$/d' stderr # only a slow machine prints this
}

succeeds() {
  run "$dtrun" "$@"
  [ "$status" -eq 0 ] || fail "dtrun $*: exit status $status, expected 0"
}

# refuses STATUS PATTERN ARGUMENTS...: dtrun ends with STATUS, prints nothing and says why in one line that matches PATTERN
refuses() {
  local expected=$1 pattern=$2
  shift 2
  run "$dtrun" "$@"
  [ "$status" -eq "$expected" ] || fail "dtrun $*: exit status $status, expected $expected"
  [ -s stdout ] && fail "dtrun $*: something on standard output"
  says_in_one_line "$pattern" "$@"
}

says_in_one_line() {
  local pattern=$1
  shift
  [ "$(wc -l <stderr)" -eq 1 ] || fail "dtrun $*: expected one line on standard error"
  grep -qE "^dtrun: .*$pattern" stderr || fail "dtrun $*: expected a line that matches '$pattern'"
}

# at_terminal [PATTERN KEYS]... -- COMMAND...: runs terminal.py and leaves the lines of its screen in the file stdout
at_terminal() { run python3 "$source_dir/tests/cli/terminal.py" "$@"; }
# prompt_stands_alone: the shell's prompt would be on a line of its own
prompt_stands_alone() { [ -z "$(tail -n 1 stdout)" ] || fail "the prompt lands on: $(tail -n 1 stdout)"; }

same_text() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# has_links FOLDER: the files to which its guides link are there; pages of results may lack some
has_links() {
  local guide link
  for guide in $(cd "$1" && find . -name '*.md' -not -path "*/results/*"); do
    for link in $(grep -oE '\]\([^)# ]+' "$1/$guide" | cut -c3- | grep -v :); do
      [ -f "$1/$(dirname "$guide")/$link" ] || fail "$1/$guide: there is no $link"
    done
  done
}

# Makes a home of dtrun's files that lists a model, which is in a package in the folder `wheels`.
make_home() {
  mkdir -p home/models home/scripts wheels/llm_toy
  cp "$source_dir/scripts/get-model" home/scripts/
  ln -s "$models"/mini-* home/models/
  echo 'a toy' >wheels/llm_toy/toy.gguf
  printf '# a comment\ntoy llm-toy==1.0 toy.gguf 6 %s\n' "$(sha256sum wheels/llm_toy/toy.gguf | cut -d' ' -f1)" >home/models/pull.txt
  python3 - <<'PY'
import zipfile
with zipfile.ZipFile("wheels/llm_toy-1.0-py3-none-any.whl", "w") as z:
    z.write("wheels/llm_toy/toy.gguf", "llm_toy/toy.gguf")
    z.writestr("llm_toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-toy\nVersion: 1.0\n")
    z.writestr("llm_toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("llm_toy-1.0.dist-info/RECORD", "")
PY
  export DTRUN_HOME=$PWD/home PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/wheels XDG_DATA_HOME=$PWD/data
}

run_tests() {
  local failed=0 name folder
  for name in $(declare -F | sed -n 's/^declare -f \(it_.*\)/\1/p'); do
    if [[ -n ${LEAVE_OUT:-} && $name =~ $LEAVE_OUT ]]; then # an expression; tests/arm.sh says which, and why
      echo "left out: ${name//_/ }"
      continue
    fi
    folder=$(mktemp -d)
    if (cd "$folder" && "$name"); then
      echo "ok    ${name//_/ }"
    else
      echo "FAIL  ${name//_/ }"
      failed=1
    fi
    rm -rf "$folder"
  done
  exit $failed
}
