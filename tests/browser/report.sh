#!/usr/bin/env bash
# The page of `dtrun run report` in a real browser: nothing is cut off when printed on A4, labels of figures do not overlap, dark theme.
. "$(dirname "$0")/helpers.sh"

results=$source_dir/tests/bench/results
# All kinds of figures: bars of sets and of ways of sampling, lines, maps.
all=("$results"/{temperature,batch,tasks}.jsonl "$source_dir/tests/data/experiments/settings.jsonl")

# make_page EXPERIMENTS...: makes the page of the sample and these experiments
make_page() {
  command -v gnuplot >/dev/null || { echo '  skipped: no gnuplot'; return 1; }
  succeeds run report "$source_dir/tests/data/experiments/sample.jsonl" "$@" --out here
}

it_cuts_nothing_in_print_at_A4() {
  make_page "${all[@]}" || return 0
  as_printed here/report.html
  asks printed.html 'const all = [...document.querySelectorAll("table, figure, figure svg, pre")].filter(e => e.getClientRects().length);
checkWidth(all);
for (const figure of document.querySelectorAll("figure svg"))
  if (figure.getBoundingClientRect().height > 730) say("tall " + figure.getBoundingClientRect().height); // of 1047: a heading fits above
say("things " + all.length);' "$printed_width"
  finds_nothing wide 'cut in print'
  finds_nothing tall 'alone on a page'
  [ "$(sed -n 's/^things //p' log)" -gt 40 ] || fail 'too few tables and figures'
}
it_keeps_labels_of_figures_apart_and_clear_of_lines() {
  make_page "${all[@]}" || return 0
  local script='[...document.querySelectorAll("figure svg")].filter(svg => svg.getClientRects().length).forEach(check)'
  asks here/report.html "$script"
  finds_nothing 'cut|overlap|crossed' 'labels'
  [ "$(grep -cE '^drawing [0-9]{2} [0-9]+' log)" -gt 15 ] || fail 'too few figures'
  asks_phone 390 here/report.html "$script"
  finds_nothing 'cut|overlap|crossed' 'labels on a phone'
  [ "$(grep -cE '^drawing [0-9]+ [0-9]+' log)" -gt 15 ] || fail 'too few figures on a phone'
}
it_shows_whole_figures_with_letters_of_11_pixels_on_a_phone() {
  make_page "${all[@]}" || return 0
  asks_phone 390 here/report.html 'const figures = document.querySelectorAll("figure");
checkWidth(figures);
for (const figure of figures) {
  const texts = [...figure.querySelectorAll("text")].filter(t => t.textContent.trim() && t.getClientRects().length);
  const least = Math.min(...texts.map(t => Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b) * parseFloat(getComputedStyle(t).fontSize)));
  const shown = [...figure.querySelectorAll("svg")].filter(svg => svg.getClientRects().length).length;
  say((least >= 11 && shown === 1 ? "letters" : "small " + least + " in " + shown) + " at " + innerWidth);
}'
  finds_nothing 'wide|small' 'on a phone'
  [ "$(grep -cx 'letters at 390' log)" -gt 15 ] || fail 'too few figures'
}
it_breaks_no_word_of_a_heading() {
  make_page || return 0
  asks here/report.html 'for (const th of document.querySelectorAll("th")) {
  const range = document.createRange();
  for (const node of th.childNodes) for (const word of (node.textContent || "").matchAll(/[^ /]+/g)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const tops = [...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top));
    if (new Set(tops).size > 1) say("broken " + word[0]);
  }
}
say("looked");'
  [ "$(cat log)" = looked ] || fail "$(cat log)"
}
it_fits_a_phone() {
  make_page "${all[@]}" || return 0
  fits_a_phone here/report.html
}
it_follows_a_dark_theme() {
  make_page || return 0
  local script='const s = getComputedStyle(document.body);
say(s.backgroundColor + " " + s.color + " " + getComputedStyle(document.querySelector("figure svg text")).fill)'
  asks here/report.html "$script" $dark
  grep -qx 'rgb(20, 24, 28) rgb(228, 232, 236) rgb(228, 232, 236)' log || fail "dark: $(cat log)"
  asks here/report.html "$script" $light
  grep -qx 'rgb(255, 255, 255) rgb(28, 32, 36) rgb(28, 32, 36)' log || fail "light: $(cat log)"
}
it_has_lines_that_stand_out_in_both_themes() {
  make_page "${all[@]}" || return 0
  local script='const light = c => { const [r, g, b] = c.map(x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const numbers = text => text.match(/[0-9.]+/g).map(Number), paper = numbers(getComputedStyle(document.body).backgroundColor);
let lines = 0;
for (const path of document.querySelectorAll("figure.lines svg:first-child path[stroke^=rgb]")) {
  const style = getComputedStyle(path), own = numbers(style.stroke), bright = style.filter === "none" ? 1 : numbers(style.filter)[0];
  const seen = own.slice(0, 3).map((x, i) => Math.min(255, x * bright) * style.strokeOpacity + paper[i] * (1 - style.strokeOpacity));
  const [a, b] = [light(seen), light(paper)], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  lines++;
  if (ratio < LEAST) say("faint " + style.stroke + " " + style.strokeOpacity + " " + ratio.toFixed(2));
}
say("lines " + lines);'
  asks here/report.html "${script/LEAST/4.5}" $dark
  finds_nothing faint "dark: $(sort log | uniq -c | head -5)"
  [ "$(sed -n 's/^lines //p' log)" -gt 50 ] || fail 'too few lines'
  asks here/report.html "${script/LEAST/1.6}" $light # yellow on white is used for larger marks
  finds_nothing faint "light: $(sort log | uniq -c | head -5)"
}
it_shows_where_tables_go_on_beside_a_narrow_window() {
  make_page || return 0
  asks here/report.html 'const s = getComputedStyle(document.querySelector(".wide"));
say(innerWidth < 736 && s.backgroundImage.startsWith("linear-gradient") ? "shadow" : "none " + innerWidth);' --window-size=500,800
  [ "$(cat log)" = shadow ] || fail "$(cat log)"
  asks here/report.html 'say(getComputedStyle(document.querySelector(".wide")).backgroundImage);'
  [ "$(cat log)" = none ] || fail "$(cat log)"
}
it_has_numbers_and_tables_to_be_saved() {
  make_page || return 0
  for name in csv tex; do
    asks here/report.html "document.body.innerHTML = '<pre></pre>' + document.querySelector('a[download=\"report.$name\"]').outerHTML + '<pre id=\"log\"></pre>';
for (const line of decodeURIComponent(document.querySelector('a').href.replace(/^[^,]*,/, '')).split('\n')) said.push(line);"
    sed 's/&amp;/\&/g; s/&lt;/</g; s/&gt;/>/g' log >saved
    same_text saved <(cat here/report.$name; echo)
  done
}

run_tests
