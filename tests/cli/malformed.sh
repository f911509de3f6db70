#!/usr/bin/env bash
# Malformed checkpoints (tests/unit/malformed.h) end with exit status 2 and one line that says what was wrong.
# malformed.sh DTRUN SOURCE_DIR TEST_MALFORMED
. "$(dirname "$0")/helpers.sh"
writer=$(realpath "$3")

it_refuses_every_malformed_checkpoint() {
  "$writer" write . || fail 'they were not written'
  local says model number=0
  while [ -e $number.says ]; do
    says=$(sed 's/[][().|*+?{}\\^$]/\\&/g' $number.says)
    model=$number
    [ -e $number.gguf ] && model=$number.gguf
    refuses 2 "$model.*$says" ar -m $model --draft none --text hello -n 1
    number=$((number + 1))
  done
  [ $number -gt 100 ] || fail "only $number"
}

run_tests
