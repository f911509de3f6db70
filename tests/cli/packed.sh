#!/usr/bin/env bash
# Packed weights that are kept for the next start, in the user's cache. packed.sh DTRUN SOURCE_DIR
. "$(dirname "$0")/helpers.sh"
packed=cache/dtrun/packed

# says OPTIONS...: a short text, which is the same however the weights came
says() { succeeds ar -m ./model.gguf -p 'Once upon a time' -n 12 --backend cpu -t 2 -q "$@"; }
begin() {
  export XDG_CACHE_HOME=$PWD/cache
  cp "$models/SmolLM2-135M-Instruct.Q4_1.gguf" model.gguf
  says --no-packed-cache
  mv stdout plain
  [ ! -e $packed ] || fail 'weights were kept'
}
# Each run writes at least 4 of 95 MB.
keep() {
  local file
  for _ in {1..30}; do
    says
    same_text plain stdout
    for file in "$packed"/*; do
      name=${file##*/}
      [ "$name" != '*' ] && [ "${name%.part}" = "$name" ] && return
    done
  done
  fail "there is no whole file: $(ls -l $packed)"
}

it_keeps_them_and_reads_them() {
  begin && keep
  touch -d '2001-01-01' $packed/"$name"
  says
  same_text plain stdout
  [ "$(find $packed -type f -newermt 2002-01-01)" ] || fail 'the file was not used'
  [ "$(ls $packed)" = "$name" ] || fail "$(ls -l $packed)"
}
it_replaces_a_file_that_is_damaged() {
  begin && keep
  cp $packed/"$name" whole
  local size at
  size=$(stat -c %s whole)
  for at in 0 9 100 5000 $((size / 2)) $((size - 70)); do
    cp whole $packed/"$name"
    printf '\xa5\x5a' | dd of=$packed/"$name" bs=1 seek="$at" conv=notrunc status=none
    cmp -s whole $packed/"$name" && fail "nothing is damaged at $at"
    says
    same_text plain stdout
    cmp -s whole $packed/"$name" && fail "what was damaged at $at is whole without being written"
    rm -f $packed/*
  done
  for at in 0 7 4095 4096 $((size - 1)); do
    head -c "$at" whole >$packed/"$name"
    says
    same_text plain stdout
    rm -f $packed/*
  done
}
it_packs_again_what_has_changed() {
  begin && keep
  local first=$name
  touch model.gguf
  says
  same_text plain stdout
  [ -e $packed/"$first" ] && [ "$(find $packed -type f | wc -l)" = 2 ] || fail "$(ls -l $packed)"
}
it_does_without() {
  begin
  for XDG_CACHE_HOME in /proc/nowhere /dev/null /dev/full; do
    says
    same_text plain stdout
  done
}
it_removes_what_was_not_used_for_long() {
  begin
  mkdir -p $packed
  truncate -s 19G $packed/older && touch -d '2001-01-01' $packed/older
  truncate -s 1G $packed/old && touch -d '2002-01-01' $packed/old
  truncate -s 1M $packed/part.part && touch -d '2003-01-01' $packed/part.part
  says
  [ ! -e $packed/older ] && [ ! -e $packed/part.part ] || fail "$(ls -l $packed)"
}
# The limit is 20 GB or a tenth of the disk; the model takes 98.6 MB of it.
it_keeps_to_its_limit() {
  begin
  mkdir -p $packed
  local limit
  limit=$(($(df -B1 --output=size . | tail -1) / 10))
  [ "$limit" -lt 20000000000 ] || limit=20000000000
  truncate -s $((limit - 99500000)) $packed/old && touch -d '2001-01-01' $packed/old
  says
  [ -e $packed/old ] || fail 'a file was removed that fits'
  rm -r $packed && mkdir $packed
  truncate -s $((limit - 97500000)) $packed/old && touch -d '2001-01-01' $packed/old
  says
  [ ! -e $packed/old ] || fail 'all files together are larger than the limit'
}
run_tests
