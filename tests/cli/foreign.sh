#!/usr/bin/env bash
# Options of llama.cpp, ollama, transformers and vLLM: each has the meaning or the answer that lua/cli/README.md gives.
. "$(dirname "$0")/helpers.sh"
page=$source_dir/lua/cli/README.md
table=$source_dir/lua/cli/foreign.c

# rows: prints each name on the page, a tab, and the text next to it
rows() {
  grep -E '^\| `--?[a-z]' "$page" | while IFS='|' read -r _ names answer _; do
    answer=${answer# }
    names=${names//[\`,]/}
    for name in $names; do printf '%s\t%s\n' "$name" "${answer% }"; done
  done
}
# argument NAME: prints the name of the option's value
argument() {
  local said
  said=$("$dtrun" "$1" 2>&1) && fail "$1: exit status 0"
  [[ $said == "dtrun: option $1 needs a value: $1 "* ]] && echo "${said##* }"
}

it_answers_each_name_as_the_page_says() {
  local n=0 taken=0 name answer ours
  while IFS=$'\t' read -r name answer; do
    n=$((n + 1))
    if [[ $answer == '`'* ]]; then
      ours=${answer//\`/}
      taken=$((taken + 1))
      if [ "$ours" = --chat ] || [ "$ours" = --help ]; then # flags
        succeeds "$name" --help
      else
        [ -n "$(argument "$name")" ] && [ "$(argument "$name")" = "$(argument "$ours")" ] || fail "$name is not $ours"
      fi
    else
      "$dtrun" "$name" 8 >all 2>&1 && fail "$name: exit status 0"
      [ "$(<all)" = "dtrun: no option $name: $answer" ] || fail "$name: the page says otherwise: $(<all)"
    fi
  done < <(rows)
  [ "$n" -ge 200 ] && [ "$taken" -ge 20 ] || fail "only $n names, $taken of them taken"
}
# others FILE PATTERN: prints the names of other programs in the rows of a table whose beginning matches the pattern
others() { tr -d '\n' <"$source_dir/$1" | grep -oE "$2"', *("[^"]*"|NULL)' | sed -E 's/.*, *//' | tr -c 'a-z0-9A-Z-' '\n' | grep -E '^-'; }

it_has_a_row_for_each_name() {
  rows | cut -f1 | sort >on_page
  [ "$(uniq -d on_page)" = '' ] || fail "twice: $(uniq -d on_page)"
  { sed -n '/foreign\[\] = {/,/^};/p' "$table" | tr -d '\n' | grep -oE '\{"[^"]*"( *"[^"]*")*,' | tr -c 'a-z0-9A-Z-' '\n' | grep -E '^-'
    others lua/request/fields.c '\{"[a-z0-9_]+", *("[^"]*"|NULL)'
    others lua/cli/options.c '\{"-[^"]*"'; } | sort >names
  [ "$(uniq -d names)" = '' ] || fail "twice in the tables: $(uniq -d names)"
  [ "$(comm -13 on_page names)" = '' ] || fail "not on the page: $(comm -13 on_page names)"
  [ "$(comm -23 on_page names)" = '' ] || fail "no name: $(comm -23 on_page names)"
}
# As in llama.cpp.
it_takes_0_for_the_default() {
  local option
  "$dtrun" ar -p hi -n 4 --temp 1 -t 1 -q >plain || fail 'no text'
  for option in --ctx --threads --top-k --min-tokens; do
    "$dtrun" ar -p hi -n 4 --temp 1 -t 1 -q $option 0 >zero || fail "$option 0 is refused"
    same_text plain zero
  done
}
it_lists_each_option_on_the_page_of_options() {
  "$dtrun" --help | sed -nE 's/^  (-.*[^ ]) +( [^ ].*)$/\1\2/p' | sed -nE 's/ +/ /gp' | sort >helped
  sed -n '/^## All options/,$p' "$source_dir/lua/cli/OPTIONS.md" | sed -nE 's/^\| `(-.*)` \| (.*) \|$/\1 \2/p' | sed 's/\\|/|/g' | sort >listed
  [ "$(wc -l <listed)" -gt 60 ] || fail "$(wc -l <listed) options on the page"
  same_text helped listed
}
it_knows_the_sixty_names_that_people_type() {
  local name
  for name in --repeat-last-n --no-repeat-ngram-size --dry-multiplier --bad-words --guided-json --mlock --no-mmap -b -ub \
    --samplers --mirostat -e --log-file -mli --in-prefix --prompt-cache --hf-overrides --verbose-prompt --lora -fa -ctk -ctv -r \
    --reverse-prompt --jinja --chat-template-kwargs --draft-max --draft-min --draft-p-min --num-speculative-tokens -ngld --num-gpu -sm -ts \
    -cb --dtype --load-in-4bit --quantization --gpu-memory-utilization --tensor-parallel-size --keepalive --format \
    --min-length --num-beams --do-sample --device --device-map -i -cnv --keep --max-length -hff --hf-token --tokenizer --mmproj; do
    [[ $("$dtrun" "$name" 1 2>&1) == "dtrun: no option $name: "* ]] || fail "$name: no answer"
  done
  for name in -sys --system-prompt --chat-template --max-tokens --num-predict --num-ctx --max-model-len --rope-scaling --rope-scale --yarn-orig-ctx -hf --guided-regex --assistant-model --draft-model -ngl --n-gpu-layers; do
    refuses 2 "option $name needs a value" "$name"
  done
}
it_means_the_same_by_another_name() {
  local question='Hello there'
  succeeds ar --system Brief --template chatml -p "$question" -n 12 -q
  mv stdout expected
  succeeds ar -sys Brief --chat-template chatml -p "$question" --max-tokens 12 -q
  same_text expected stdout
  succeeds ar --system-prompt=Brief --chat_template=chatml -p "$question" --num_predict=12 -q -hf "$models/mini-target"
  same_text expected stdout
  succeeds linear --assistant-model "$models/mini-draft" -hf "$models/mini-target" --system_prompt Brief --chat-template chatml -p "$question" -n 12 -q
  same_text expected stdout
  succeeds ar --chat --template chatml -p "$question" -n 12 -q
  mv stdout expected
  succeeds ar -st --chat-template chatml -p "$question" -n 12 -q
  same_text expected stdout
  refuses 2 'option -st takes no value|unknown option' -st=1
  refuses 2 'option --single-turn takes no value' --single-turn=1
}
it_suggests_nothing_that_misleads() {
  refuses 2 "no option --dtype: .*--weights q8 or q4 rounds them" --dtype bfloat16
  for name in --session --type --layers --vocabulary --plugins; do refuses 2 "unknown option '$name', see dtrun --help" $name; done
  refuses 2 "'--temprature' \(did you mean '--temperature'\?\)" --temprature
  refuses 2 "'--treads' \(did you mean '--threads'\?\)" --treads
}
it_says_that_a_cut_of_the_distribution_does_nothing_without_a_temperature() {
  local name
  for name in '--top-p 0.9' '--top-k 40' '--min-p 0.1'; do
    # shellcheck disable=SC2086
    succeeds ar -p hello -n 2 $name
    grep -q "^dtrun: ${name% *} has no effect at temperature 0: give --temp$" stderr || fail "$name: nothing said"
    # shellcheck disable=SC2086
    succeeds ar -p hello -n 2 $name -q
    [ -s stderr ] && fail "$name -q: something said"
    # shellcheck disable=SC2086
    succeeds ar -p hello -n 2 $name --temp 0.5
    grep -q 'no effect' stderr && fail "$name --temp 0.5: has no effect"
  done
  succeeds ar -p hello -n 2 --temp 0
  grep -q 'no effect' stderr && fail 'nothing was given'
  true
}
it_takes_a_model_where_a_policy_stands() {
  ln -s "$models/mini-target" folder
  succeeds ar -m folder -p hello -n 5 -q
  mv stdout expected
  succeeds folder ar -p hello -n 5
  same_text expected stdout
  grep -q '^dtrun: folder: taken as the model, as after -m$' stderr || fail 'not said'
  succeeds ar folder -p hello -n 5 -q
  same_text expected stdout
  [ -s stderr ] && fail 'something said with -q'
  refuses 2 'no such file: X.gguf' X.gguf -p hello -q
  refuses 2 "two targets: 'folder', and 'X.gguf' after --target" folder -m X.gguf -p hello
  refuses 2 "two targets: 'folder' and 'X.gguf'" folder X.gguf -p hello
  refuses 2 "unexpected argument 'hello'" ar folder hello
  refuses 2 "run: 'folder' is a model, not a driver: dtrun folder, or dtrun chat folder" run folder
  refuses 2 'no such file: X.gguf' chat X.gguf -q
}
it_names_the_file_beside_it() {
  touch gate.lua
  refuses 2 "no policy 'gate': did you mean \./gate\.lua\?" gate -p hello
  refuses 2 "no driver 'gate': did you mean \./gate\.lua\?" run gate
  refuses 2 "no policy 'gates'; installed: .*\(give a model with -m\)" gates -p hello
}
it_prints_straight_columns() {
  succeeds --help
  awk '/^  -/ { if (substr($0, 36, 1) != " " || substr($0, 37, 1) == " ") { print; bad = 1 } } END { exit bad }' stdout || fail 'a crooked row of --help'
  succeeds --list
  awk '/^  / { name = $1; rest = substr($0, length(name) + 3); match(rest, /^ +/); at = length(name) + 3 + RLENGTH
               if (list in first && first[list] != at) { print; bad = 1 } first[list] = at; next } { list++ } END { exit bad }' stdout || fail 'a crooked row of --list'
}

run_tests
