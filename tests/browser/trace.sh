#!/usr/bin/env bash
# The page of `dtrun run trace` in a real browser: Debian's chromium, headless. One start runs a program that uses the
# page as a reader would, and writes what it sees into the page; --dump-dom prints it.
. "$(dirname "$0")/../cli/helpers.sh"

# browse PAGE ARGUMENTS...: chromium has a profile of its own here, and neither sandbox nor graphics card
browse() {
  local page=$1
  shift
  timeout 120 chromium --no-sandbox --headless=new --disable-gpu --user-data-dir="$PWD/profile" --window-size=1200,900 \
    "$@" "file://$PWD/$page" 2>/dev/null
}
make_page() {
  succeeds eagle2 --set top_k="${1:-3}" --set total="${2:-9}" --text 'It was a dark night, and' -n 20 --ignore-eos --trace t.jsonl
  mv stdout text
  succeeds run trace t.jsonl
  grep -qx t.html stdout || fail 'the name of the page'
  iterations=$(grep -c '"iteration"' t.jsonl)
}

it_steps_by_buttons_keys_and_slider() {
  make_page
  cp t.html driven.html
  cat >>driven.html <<'HTML'
<pre id="log"></pre>
<script>
const lines = [], page = id => document.getElementById(id);
onerror = message => { lines.push("error " + message); };
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
see("slider");
page("log").textContent = "LOG\n" + lines.join("\n") + "\nEND\n";
</script>
HTML
  browse driven.html --dump-dom >dom
  sed -n '/LOG$/,/^END/p' dom | sed -e 1d -e '$d' >log
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
  cp t.html driven.html
  cat >>driven.html <<'HTML'
<pre id="log"></pre>
<script>
const panel = document.getElementById("tree"), outer = panel.getBoundingClientRect();
const inner = panel.querySelector("g.root").getBoundingClientRect();
const seen = inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
document.getElementById("log").textContent =
  "LOG " + (seen ? "in view" : "out of view") + (panel.scrollWidth > panel.clientWidth ? ", wide" : "") + " END";
</script>
HTML
  browse driven.html --dump-dom >dom
  grep -q 'LOG in view, wide END' dom || fail "$(grep -o 'LOG .* END' dom | tail -n 1)"
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
