#!/usr/bin/env bash
# Models in several GGUF files: split.sh DTRUN SOURCE [smollm2]. The tokens equal those of the model in one file, whichever part is named.
. "$(dirname "$0")/helpers.sh"
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
if [ "${3:-}" = smollm2 ]; then
  whole=$models/SmolLM2-135M-Instruct.Q4_1.gguf how=(--chat -p 'Why is the sky blue?' -n 40)
  [ -e "$whole" ] || { echo 'SKIPPED: no models/SmolLM2-135M-Instruct.Q4_1.gguf: scripts/get-model smollm2 brings it'; exit 77; }
else
  whole=$source_dir/tests/golden/logits/gguf_llama/model.gguf how=(--text hello -n 12)
fi
split() { python3 "$source_dir/tests/golden/split_gguf.py" "$whole" "$@" || fail "it cannot be split: $*"; }

it_gives_the_tokens_of_the_whole_file_whichever_part_is_named() {
  local parts named policy
  for policy in ar rate; do
    succeeds $policy -m "$whole" -md none "${how[@]}" -q
    mv stdout $policy.txt
  done
  for parts in 2 3 17; do
    split $parts m
    [ "$(find . -name "m-*-of-000$(printf %02d $parts).gguf" | wc -l)" = $parts ] || fail "not $parts parts"
    for named in 1 $parts $((parts / 2 + 1)); do
      for policy in ar rate; do
        succeeds $policy -m "$(printf m-%05d-of-%05d.gguf $named $parts)" -md none "${how[@]}" -q
        same_text $policy.txt stdout
      done
    done
  done
  split 3 e empty
  succeeds ar -m e-00002-of-00003.gguf -md none "${how[@]}" -q
  same_text ar.txt stdout
}
it_names_a_part_that_is_missing_or_of_another_model() {
  split 3 m
  split 2 other
  mv m-00002-of-00003.gguf away
  refuses 2 'm-00002-of-00003.gguf: no such file .part 2 of 3 of a model' ar -m m-00003-of-00003.gguf -md none -p x -q
  cp m-00001-of-00003.gguf m-00002-of-00003.gguf
  refuses 2 'm-00002-of-00003.gguf: it is part 1 of 3, expected part 2 of 3' ar -m m-00001-of-00003.gguf -md none -p x -q
  cp other-00002-of-00002.gguf m-00002-of-00003.gguf
  refuses 2 'm-00002-of-00003.gguf: it is part 2 of 2, expected part 2 of 3' ar -m m-00001-of-00003.gguf -md none -p x -q
  head -c 500 away >m-00002-of-00003.gguf
  refuses 2 'm-00002-of-00003.gguf: .*truncated.* .part 2 of 3 of a model' ar -m m-00001-of-00003.gguf -md none -p x -q
  mv away renamed.gguf
  refuses 2 'renamed.gguf: it is part 2 of 3 of a model, expected a name that ends in -00002-of-00003.gguf' ar -m renamed.gguf -md none -p x -q
}
it_takes_a_folder_of_parts_and_lists_them_as_one_model() {
  mkdir -p parts home/models hub/models--o--split/{refs,snapshots/c,blobs}
  (cd parts && split 3 m)
  succeeds ar -m "$whole" -md none "${how[@]}" -q
  mv stdout expected
  succeeds ar -m parts -md none "${how[@]}" -q
  same_text expected stdout
  echo c >hub/models--o--split/refs/main
  for number in 1 2 3; do
    mv parts/m-0000$number-of-00003.gguf hub/models--o--split/blobs/$number
    ln -s ../../blobs/$number hub/models--o--split/snapshots/c/m-0000$number-of-00003.gguf
  done
  export HF_HUB_CACHE=$PWD/hub
  for name in o/split o/split:m-00001-of-00003.gguf o/split:m-00003-of-00003.gguf o/split/m-00002-of-00003.gguf; do
    succeeds ar -m "$name" -md none "${how[@]}" -q
    same_text expected stdout
  done
  succeeds ls
  [ "$(grep -c o/split stdout)" = 1 ] || fail "$(<stdout)"
  cp hub/models--o--split/snapshots/c/m-00001-of-00003.gguf hub/models--o--split/snapshots/c/other.gguf
  succeeds rm -y o/split:m-00001-of-00003.gguf
  [ "$(find hub -type f -size +0 | sort | paste -sd ' ')" = 'hub/models--o--split/refs/main hub/models--o--split/snapshots/c/other.gguf' ] || fail "$(find hub)"
}

run_tests
