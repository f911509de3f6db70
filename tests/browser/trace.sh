#!/usr/bin/env bash
# The page of `dtrun run trace` in a real browser: a script uses it as a reader would, and reports what it sees.
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
  # at the end the page shows the whole text: the same number of characters as were printed
  local shown printed
  shown=$(sed -n 's/^end|.*|//p' log)
  printed=$(LC_ALL=C.UTF-8 wc -m <text)
  [ "$shown" -eq "$printed" ] || fail "$shown characters of the text are shown, $printed were printed"
}
# Used by the next tests: is an element within the tree's window, and is the whole accepted path?
sight='const panel = document.getElementById("tree"), press = key => dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
function inSight(element) {
  const outer = panel.getBoundingClientRect(), inner = element.getBoundingClientRect();
  return inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
}
const pathInSight = () => [...panel.querySelectorAll("g.root, g.accepted, g.bonus, g.corrected")].every(inSight);
const width = () => Math.round(panel.querySelector("svg").getBoundingClientRect().width);
'
it_opens_a_wide_tree_with_the_accepted_path_in_sight_or_at_least_its_root() {
  make_page 10 60
  asks t.html "$sight"'let rooms = 0;
for (let i = 0; i < all.length; i++) {
  show(i);
  const path = union(view.path().map(g => g.getBoundingClientRect()));
  const room = path.right - path.left + 24 <= panel.clientWidth && path.bottom - path.top + 24 <= panel.clientHeight;
  say(pathInSight() || !room && inSight(view.path()[0]) ? "in sight" : "out of sight " + i);
  if (room) rooms++;
}
say(rooms > 0 ? "room" : "no room");
say(Math.min(...[...document.querySelectorAll("body *")].map(e => parseFloat(getComputedStyle(e).fontSize))) >= 11 ? "letters" : "small");'
  grep -c '^in sight' log | grep -qx "$iterations" || fail "$(cat log)"
  grep -qx letters log || fail 'letters below 11 pixels'
  grep -qx room log || fail 'no path that fits'
}
it_opens_a_large_tree_at_its_root_with_letters_of_11_pixels() {
  for policy in 'linear --set K=40' 'eagle2 --set depth=12 --set top_k=10 --set total=60'; do
    # shellcheck disable=SC2086 # words
    succeeds $policy --text 'It was a dark night, and' -n 40 --ignore-eos --trace t.jsonl
    succeeds run trace t.jsonl
    for size in 1200,900 600,500; do
      asks t.html "$sight"'let large = 0;
for (let i = 0; i < all.length; i++) {
  show(i);
  const drawing = panel.querySelector("svg").getBoundingClientRect();
  large += drawing.height > panel.clientHeight || drawing.width > panel.clientWidth;
  const letters = [...panel.querySelectorAll("text")].map(t => t.getScreenCTM().a * parseFloat(getComputedStyle(t).fontSize));
  say((Math.min(...letters) >= 10.99 ? "letters" : "small " + Math.min(...letters)) + (inSight(panel.querySelector("g.root")) ? " root" : " lost " + i));
}
byId("fit").click();
say(large && inSight(panel.querySelector("svg")) ? "large" : "small " + large);' --window-size=$size
      [ "$(tail -1 log)" = large ] || fail "$policy, $size: $(tail -1 log)"
      sed '$d' log | grep -vx 'letters root' && fail "$policy, $size"
    done
  done
  return 0
}
it_zooms_by_buttons_keys_wheel_and_fingers() {
  make_page 10 60
  asks t.html "$sight"'const first = width(), say_if = (name, is) => say(name + (is ? " yes" : " no " + first + " " + width()));
document.getElementById("fit").click();
say_if("fit", inSight(panel.querySelector("svg")) && panel.scrollWidth <= panel.clientWidth && panel.scrollHeight <= panel.clientHeight);
const whole = width();
document.getElementById("in").click();
say_if("in", width() > whole);
document.getElementById("out").click();
say_if("out", Math.abs(width() - whole) <= 1);
press("+");
say_if("plus", width() > whole);
press("0");
say_if("zero", width() === whole);
const wheel = ctrlKey => new WheelEvent("wheel", { deltaY: -100, ctrlKey, clientX: 300, clientY: 300, cancelable: true });
say_if("plain wheel", panel.dispatchEvent(wheel(false)) && width() === whole);
say_if("wheel", !panel.dispatchEvent(wheel(true)) && width() > whole);
press("0");
const touch = (name, apart) => panel.dispatchEvent(new TouchEvent(name, { cancelable: true,
  touches: [0, 1].map(identifier => new Touch({ identifier, target: panel, clientX: 200 + identifier * apart, clientY: 300 })) }));
touch("touchstart", 50);
say_if("fingers", !touch("touchmove", 150) && Math.abs(width() - 3 * whole) <= 3);
for (let i = 0; i < 60; i++) press("+");
say_if("most", width() < 1e5);
for (let i = 0; i < 99; i++) press("-");
say_if("least", width() >= 20);
press("0");
for (let i = 0; i < 4; i++) press("+");
const chosen = view.scale;
for (let i = 1; i < all.length; i++) { show(i); if (!inSight(view.path()[0])) say("lost " + i); }
say_if("kept", view.scale === chosen);'
  grep -vE ' yes$' log && fail 'zoom'
  [ "$(wc -l <log)" -eq 11 ] || fail "$(cat log)"
}
it_plays_to_the_end_and_stops() {
  make_page
  asks t.html 'let tick; setInterval = f => (tick = f, 1); clearInterval = () => {}; // a clock of the test
byId("play").click();
const label = () => byId("play").textContent;
say(label());
for (let i = 0; i < all.length; i++) tick();
say(label() + (at === all.length - 1 ? " at the end" : " at " + at));
byId("play").click();
say(label() + " at " + at);
byId("play").click();
say(label());'
  printf '%s\n' stop 'play at the end' 'stop at 0' play | diff - log || fail 'play'
}
it_fits_a_phone() {
  make_page 10 60
  fits_a_phone t.html
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
const drawing = tree.firstElementChild.getBoundingClientRect();
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
