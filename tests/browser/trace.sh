#!/usr/bin/env bash
# The page of `dtrun run trace` in a real browser: a program uses it as a reader would, and says what it sees.
. "$(dirname "$0")/helpers.sh"

make_page() {
  succeeds eagle2 --set top_k="${1:-3}" --set total="${2:-9}" --text 'It was a dark night, and' -n 20 --ignore-eos --trace t.jsonl
  mv stdout text
  succeeds run trace t.jsonl
  grep -qx t.html stdout || fail 'the name of the page'
  iterations=$(grep -c '"iteration"' t.jsonl)
}

it_steps_by_buttons_keys_and_slider() {
  make_page
  asks t.html 'const lines = said, page = id => document.getElementById(id);
// What stands there: place, blocks of text, roots and bonus tokens in the picture, the address, characters of text.
function see(what) {
  const shown = [...document.querySelectorAll("#text .block")].filter(block => !block.hidden);
  const marks = name => document.querySelectorAll("#tree g." + name).length;
  lines.push([what, page("place").textContent, shown.length, marks("root"), marks("bonus") + marks("corrected"),
    location.hash, shown.map(block => block.textContent).join("").length].join("|"));
  return page("tree").innerHTML;
}
const first = see("open"), press = key => dispatchEvent(new KeyboardEvent("keydown", { key }));
press("ArrowRight");
const second = see("right");
lines.push(first === second ? "same picture" : "another picture");
page("next").click();
see("next");
press("ArrowLeft");
lines.push(see("left") === second ? "same picture" : "another picture");
page("back").click();
page("back").click();
see("back");
press("End");
see("end");
page("slider").value = 2;
page("slider").dispatchEvent(new Event("input"));
see("slider");'
  local n=$iterations
  printf '%s\n' "open|1 of $n|1|1|1|#1" "right|2 of $n|2|1|1|#2" 'another picture' "next|3 of $n|3|1|1|#3" \
    "left|2 of $n|2|1|1|#2" 'same picture' "back|1 of $n|1|1|1|#1" "end|$n of $n|$n|1|1|#$n" "slider|2 of $n|2|1|1|#2" >expected
  sed 's/|[0-9]*$//' log | diff expected - || fail 'the page did something else'
  # at the end all of the text stands there: as many characters as were printed
  local shown printed
  shown=$(sed -n 's/^end|.*|//p' log)
  printed=$(LC_ALL=C.UTF-8 wc -m <text)
  [ "$shown" -eq "$printed" ] || fail "$shown characters of the text are shown, $printed were printed"
}
it_opens_a_wide_tree_with_its_root_in_view() {
  make_page 10 60
  asks t.html 'const panel = document.getElementById("tree"), outer = panel.getBoundingClientRect();
const inner = panel.querySelector("g.root").getBoundingClientRect();
const seen = inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
say((seen ? "in view" : "out of view") + (panel.scrollWidth > panel.clientWidth ? ", wide" : ""));'
  [ "$(cat log)" = 'in view, wide' ] || fail "$(cat log)"
}
check_labels() {
  asks t.html 'for (let i = 0; i < all.length; i++) { show(i); check(document.querySelector("#tree svg")); }'
  finds_nothing 'cut|overlap|crossed' 'labels'
  [ "$(grep -cE '^drawing [0-9]+ [0-9]+$' log)" -eq "$iterations" ] || fail 'not a tree for each iteration'
}
it_keeps_labels_of_trees_apart_and_clear_of_lines() {
  make_page 10 60
  check_labels
}
it_does_so_without_graphviz() {
  make_page 10 60
  PATH=/nowhere "$dtrun" run trace t.jsonl >/dev/null || fail 'no page'
  check_labels
}
it_cuts_nothing_in_print_at_A4() {
  make_page 10 60
  as_printed t.html
  asks printed.html 'checkWidth(document.querySelectorAll("#tree, #tree svg, #text, table, #run"));
const tree = document.getElementById("tree"), drawing = tree.firstElementChild.getBoundingClientRect();
say(tree.getBoundingClientRect().bottom >= drawing.bottom && drawing.height > 100 ? "whole" : "low");' "$printed_width"
  finds_nothing 'wide|low' 'cut in print'
  grep -qx whole log || fail "$(cat log)"
}
it_follows_a_dark_theme() {
  make_page
  local script='const s = getComputedStyle(document.body), box = getComputedStyle(document.querySelector("#tree .root rect"));
say([s.backgroundColor, s.color, box.fill].join(" "))'
  asks t.html "$script" $dark
  [ "$(cat log)" = 'rgb(21, 24, 27) rgb(228, 232, 236) rgb(29, 33, 38)' ] || fail "dark: $(cat log)"
  asks t.html "$script" $light
  [ "$(cat log)" = 'rgb(255, 255, 255) rgb(28, 32, 36) rgb(246, 248, 250)' ] || fail "light: $(cat log)"
}
it_draws_another_picture_after_a_step() {
  make_page
  browse t.html --screenshot="$PWD/first.png"
  browse 't.html#2' --screenshot="$PWD/second.png"
  for picture in first second; do [ "$(wc -c <$picture.png)" -gt 20000 ] || fail "$picture.png shows nothing"; done
  cmp -s first.png second.png && fail 'the same picture'
  return 0
}

run_tests
