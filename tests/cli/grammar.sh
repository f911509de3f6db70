#!/usr/bin/env bash
# Texts that follow a grammar: the same under every policy, ended where the grammar allows it, and reported in the result; and refusals.
. "$(dirname "$0")/helpers.sh"
answer='root ::= ("yes" | "no") (", " [a-z]{2,7}){2,3} "."'

it_holds_the_text_in_every_policy_alike() {
  local policy temp
  for temp in 0 1; do
    rm -f plain
    for policy in ar linear dynatree rate "$source_dir/tests/exact/hostile/random_trees.lua"; do
      succeeds "$policy" -p 'Is it dark? ' -n 60 --temp $temp -s 5 --grammar "$answer" --json r.json -q
      grep -qxE '(yes|no)(, [a-z]{2,7}){2,3}\.' stdout || fail "$policy: $(cat stdout)"
      grep -q '"finish_reason":[[:space:]]*"eos"' r.json || fail "$policy: not ended"
      [ -e plain ] || cp stdout plain
      same_text plain stdout
    done
  done
  grep -q '"grammar":' r.json || fail 'the result does not name the grammar'
}
it_reads_a_file_and_shares_masks_in_a_batch() {
  printf '# ten digits\nroot ::= [0-9]{10}\n' >digits.gbnf
  printf '{"prompt":"%s"}\n' 'The number is' 'It was' 'Call' >prompts.jsonl
  succeeds linear --prompts prompts.jsonl -n 40 --temp 1 --parallel 3 --grammar-file digits.gbnf --json r.jsonl -q
  [ "$(grep -oE '"text":[[:space:]]*"[0-9]{10}"' r.jsonl | wc -l)" = 3 ] || fail "$(cat r.jsonl)"
  succeeds linear -p 'The number is' -n 40 --answers 4 --temp 1 --grammar-file digits.gbnf --json r.jsonl -q
  [ "$(grep -oE '"text":[[:space:]]*"[0-9]{10}"' r.jsonl | sort -u | wc -l)" -gt 1 ] || fail 'all answers are the same'
}
it_skips_a_byte_order_mark() {
  printf '\xef\xbb\xbfroot ::= "yes"\n' >marked.gbnf
  succeeds ar -p 'Is it dark? ' --grammar-file marked.gbnf -q
  [ "$(cat stdout)" = yes ] || fail "$(cat stdout)"
  printf '\xef\xbb\xbf{"const": 1}' >marked.json
  succeeds ar -p 'Is it dark? ' --json-schema-file marked.json -q
  [ "$(cat stdout)" = 1 ] || fail "$(cat stdout)"
  printf '\xef\xbb\xbfroot ::= (' >marked.gbnf
  refuses 2 'line 1, column' ar -p x --grammar-file marked.gbnf -q
}
it_blames_no_policy_for_a_grammar() {
  local policy
  for policy in ar linear rate dynatree; do
    refuses_a_text '^dtrun: grammar: a text can be read in more than 4096 ways' $policy -n 60 --grammar 'root ::= [a-c]{3} ((("a"?){0,50}){0,50}){0,50}'
    refuses_a_text '^dtrun: grammar: no token can follow the text: none .*logit_bias' $policy --grammar 'root ::= "Q"' --logit-bias Q=-inf
  done
}
# refuses_a_text PATTERN ARGUMENTS..: as refuses, but a part of the text may have been printed
refuses_a_text() {
  run "$dtrun" "${@:2}" -p 'It was ' -q
  [ "$status" -eq 2 ] || fail "dtrun ${*:2}: exit status $status, expected 2: $(<stderr)"
  [ "$(wc -l <stderr)" -eq 1 ] && grep -qE "$1" stderr || fail "dtrun ${*:2}: $(<stderr)"
}
it_verifies_no_guess_that_the_grammar_forbids() {
  cat >wrong.lua <<'END'
local Wrong = require "dt.policy".define { name = "wrong", params = {} }
function Wrong:draft(tree)
  for id = 300, 330 do tree:add(tree.root, id) end
end
return Wrong
END
  succeeds ./wrong.lua -p 'It' -n 8 --grammar 'root ::= "#"{8}' --json - -q
  tr -d ' \t\n' <stdout | grep -q '"drafted":0,' || fail "$(cat stdout)"
}
it_tells_policies_what_is_allowed_and_forced() {
  cat >told.lua <<'END'
local Told = require "dt.policy".define { name = "told", uses = { draft = false }, params = {} }
function Told:draft(tree)
  local node, left = tree.root, nil
  while node do
    local token, behind = tree:forced(node)
    if not token then break end
    assert(tree:allowed(node, token) and tree.seq.grammar)
    assert(not left or behind < left)
    node, left = tree:add(node, token), behind
  end
end
return Told
END
  local policy
  for policy in told.lua ar; do
    succeeds "$([ $policy = ar ] || echo ./)$policy" -p 'Is it dark? ' -n 60 --temp 1 -s 3 \
      --grammar 'root ::= ("It was a dark night, and " | "The old man went down to ") ("the house." | "her house.")' --json $policy.json -q
    mv stdout $policy.txt
  done
  same_text ar.txt told.lua.txt
  grep -qE '(night, and|down to) (the|her) house\.$' ar.txt || fail "$(cat ar.txt)"
  [ "$(tr -d ' \t\n' <told.lua.json | sed 's/.*"accepted":\([0-9]*\),.*/\1/')" -ge 5 ] || fail "$(cat told.lua.json)"
}
# Each different text is a state of its own, so the states of a large tree exceed the limit.
it_goes_on_where_the_states_of_guesses_find_no_room() {
  local rules='root ::= [a-z ]* (' at letter
  for at in {0..25}; do
    letter=$(printf "\\x$(printf %x $((97 + at)))")
    rules+="\"$letter\" [a-z ]{$((300 + at))} | "
  done
  printf '%s "!")\n' "$rules" >letters.gbnf
  cat >wide.lua <<'END'
local Wide = require "dt.policy".define { name = "wide", params = {} }
function Wide:draft(tree)
  local level = { tree.root }
  for _ = 1, 3 do
    tree:draft_step(level)
    local first, last = tree:branch_best(level, 80)
    level = {}
    for v = first, last do level[#level + 1] = v end
  end
end
return Wide
END
  succeeds ar -p 'It was a dark night' -n 6 --grammar-file letters.gbnf -q
  cp stdout plain
  succeeds ./wide.lua -p 'It was a dark night' -n 6 --grammar-file letters.gbnf --policy-seconds 100 -q
  same_text plain stdout
}
it_holds_the_text_to_a_schema() {
  local policy
  cat >person.json <<'END'
{"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
  "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}, "required": ["name", "next"]}
END
  rm -f plain
  for policy in ar linear rate; do
    succeeds "$policy" -p 'A person: ' -n 400 --temp 1 -s 2 --json-schema-file person.json -q
    [ -e plain ] || cp stdout plain
    same_text plain stdout
  done
  tr -d ' \n' <plain | grep -qE '^\{"name":"[^"]*",("tags":\[[^]]*\],)?"next":(null|\{.*\})\}$' || fail "$(cat plain)"
  refuses 2 'the keyword unevaluatedItems is not supported' ar -p hello -j '{"unevaluatedItems": false}'
  refuses 2 'the keyword frob is not supported' ar -p hello -j '{"frob": 3}' --strict-schema
  succeeds ar -p hello -j '{"frob": 3, "const": 1}'
  grep -q 'JSON schema: frob has no effect' stderr || fail "$(cat stderr)"
  refuses 2 'give only one of them' ar -p hello -j '{}' --grammar 'root ::= "a"'
}
it_holds_the_text_to_an_expression() {
  local policy
  rm -f plain
  for policy in ar linear rate; do
    succeeds "$policy" -p 'The date: ' -n 60 --temp 1 -s 2 --regex '(\d{4}|\u00e9)-(0[1-9]|1[0-2])( [^\s]{1,5}){2}$' -q
    [ -e plain ] || cp stdout plain
    same_text plain stdout
  done
  grep -qxE '([0-9]{4}|é)-(0[1-9]|1[0-2])( [^ ]{1,5}){2}' plain || fail "$(cat plain)"
  refuses 2 'regular expression, column 3: this repeats a repetition' ar -p hello --regex 'a**'
  refuses 2 'give only one of them' ar -p hello --regex a --grammar 'root ::= "a"'
  refuses 2 '--regex' ar -p hello --regex
  echo 'root ::= "a"' >a.gbnf
  echo '{}' >any.json
  refuses 2 '--grammar takes the text itself; to read it from a file, give --grammar-file a.gbnf' ar -p hello --grammar a.gbnf
  refuses 2 '-j takes the text itself; to read it from a file, give --json-schema-file any.json' ar -p hello -j any.json
  succeeds ar -p hello -n 8 --regex a.gbnf -q # an expression may be spelled like a file
  printf '%s' '{"pattern": "^\\d{2}$"}' >digits.json
  succeeds linear -p 'A number: ' -n 20 --json-schema-file digits.json -q
  grep -qxE '"[0-9]{2}"' stdout || fail "$(cat stdout)"
}
it_refuses_what_has_no_meaning() {
  local how
  refuses 2 'grammar, line 1, column 10: there is no rule x' ar -p hello --grammar 'root ::= x'
  refuses 2 'rule root begins with itself' ar -p hello --grammar 'root ::= root "a" | "b"'
  refuses 2 'grammar with ignore_eos' ar -p hello --grammar 'root ::= "a"' --ignore-eos
  refuses 2 'grammar with min_tokens' ar -p hello --grammar 'root ::= "a"' --min-tokens 2
  refuses 2 '--grammar, --grammar-file, .*--regex: give only one of them' ar -p hello --grammar 'root ::= "a"' --grammar-file x
  refuses 2 'no.gbnf: cannot read the grammar: No such file' ar -p hello --grammar-file no.gbnf
  for how in '--temp 0' '--temp 1' '--temp 1 --top-p 0.9' '--logprobs 3 --json r.json'; do
    # shellcheck disable=SC2086 # words
    refuses 2 'no token can follow the text' linear -p hello --grammar 'root ::= "#"' --logit-bias '#=-inf' $how
  done
}
run_tests
