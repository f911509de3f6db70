#!/usr/bin/env bash
# `dtrun run paper modes`: answers with reasoning and without, under a template that is made here, since the bundled pair has none.
. "$(dirname "$0")/helpers.sh"
modes=(run paper modes -t 1 --costs learn --prompts 1 -n 12 --repeats 1)

make_template() {
  cat >t.jinja <<'JINJA'
{%- for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor -%}
assistant:{% if enable_thinking %} Let me think about it, step by step.
{% endif %}
JINJA
}
# prompt_tokens WAY: the lengths of the prompts of plain decoding, by prompt
prompt_tokens() {
  grep '"arm": "ar"' modes.jsonl | grep "$1" | grep -oE '"prompt": "[^",]*|"prompt_tokens": [0-9]+' | sed 's/.*[ "]//' | paste -sd ' \n' | sort
}

it_asks_each_question_with_reasoning_and_without() {
  make_template
  succeeds "${modes[@]}" --template t.jinja
  grep -q '^modes/report.html$' stdout || fail 'no report'
  local arm way
  for arm in ar rate 'linear K=3' 'dynatree narrow' suffix; do
    for way in with without; do
      [ "$(grep "\"arm\": \"$arm\"" modes.jsonl | grep -c "\"reasoning\": \"answers $way reasoning\"")" -eq 3 ] ||
        fail "$arm: not three runs $way reasoning"
    done
  done
  prompt_tokens 'with reasoning' >with
  prompt_tokens 'without reasoning' >without
  [ "$(wc -l <with)" -eq 3 ] || fail "prompts: $(<with)"
  # The sentence of the template makes each prompt longer by the same number of tokens.
  [ "$(paste -d ' ' with without | awk '$1 == $3 && $2 > $4 { print $2 - $4 }' | sort | uniq -c | awk '{ print $1 }')" = 3 ] ||
    fail "lengths of prompts: $(paste with without)"
}
it_shows_both_side_by_side() {
  make_template
  succeeds "${modes[@]}" --template t.jinja --system 'Be brief.' --policies suffix
  grep -q '"system": "Be brief."' modes.jsonl || fail 'no system message in the file'
  local metric
  for metric in 'speedup' 'tokens/iteration' 'acceptance rate'; do
    grep -qF "$metric, answers with reasoning | $metric, answers without reasoning |" modes/report.md || fail "no columns of $metric"
  done
  grep -q '^With reasoning and without, after the prompt:$' modes/report.md || fail 'no table'
  grep -qE '^\| suffix( \| [0-9.]+x?( \[[0-9., ]+\])?( %)?){6} \|$' modes/report.md || fail 'no row of suffix with six numbers'
  grep -q '^answers with reasoning:$' modes/report.md && grep -q '^answers without reasoning:$' modes/report.md || fail 'no tables of each'
}
it_goes_on_where_it_was_stopped() {
  make_template
  succeeds "${modes[@]}" --template t.jinja --policies suffix
  cp modes.jsonl whole
  head -n 5 whole >modes.jsonl
  succeeds "${modes[@]}" --template t.jinja --policies suffix
  head -n 5 whole | cmp -s - <(head -n 5 modes.jsonl) || fail 'finished runs were changed'
  [ "$(wc -l <modes.jsonl)" -eq "$(wc -l <whole)" ] || fail 'another number of runs'
}
it_refuses_templates_without_reasoning() {
  refuses 2 'paper modes: .*mini-target has no chat template; give --template FILE, a template with enable_thinking' "${modes[@]}"
  refuses 2 'paper modes: think on: the chat template chatml cannot turn reasoning on or off: .*; give --template FILE' "${modes[@]}" --template chatml
  refuses 2 'paper tasks: --template is only for modes, spec_bench and speed_bench' run paper tasks --template chatml
  refuses 2 'paper modes: --think is only for spec_bench and speed_bench' "${modes[@]}" --think on
  [ ! -e modes.jsonl ] || fail 'a file of results was begun'
}

run_tests
