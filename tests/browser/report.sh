#!/usr/bin/env bash
# The page of `dtrun run report` in a real browser: nothing cut in print at A4, labels of figures apart, a dark theme.
. "$(dirname "$0")/../cli/helpers.sh"

# browse PAGE ARGUMENTS...: as in trace.sh
browse() {
  local page=$1
  shift
  timeout 120 chromium --no-sandbox --headless=new --disable-gpu --user-data-dir="$PWD/profile" "$@" "file://$PWD/$page" 2>/dev/null
}
# asks SCRIPT ARGUMENTS...: the page with a program behind it that puts its lines into <pre id="log">; they are in the file log
asks() {
  local script=$1
  shift
  cp here/report.html driven.html
  printf '<pre id="log"></pre><script>const say = [];%s;document.getElementById("log").textContent = "LOG\\n" + say.join("\\n") + "\\nEND\\n";</script>' "$script" >>driven.html
  browse driven.html --dump-dom "$@" >dom
  grep -q 'LOG$' dom || fail 'the program did not run'
  sed -n '/LOG$/,/^END/p' dom | sed -e 1d -e '$d' >log
}
make_page() {
  command -v gnuplot >/dev/null || { echo '  skipped: no gnuplot'; return 1; }
  succeeds run report "$source_dir/tests/data/experiments/sample.jsonl" --out here
}

# The rules for print are those of the screen here, and the window is as wide as A4 within margins of 1 cm: 718 pixels.
it_cuts_nothing_in_print_at_A4() {
  make_page || return 0
  sed -i 's/@media print/@media all/' here/report.html
  asks 'const most = document.documentElement.clientWidth;
for (const t of document.querySelectorAll("table, figure")) {
  const r = t.getBoundingClientRect();
  if (r.right > most + 1 || t.scrollWidth > t.clientWidth + 1 || r.left < -1) say.push("cut: " + t.textContent.slice(0, 60));
}
say.push("tables " + document.querySelectorAll("table").length)' --window-size=718,1000
  grep -q '^cut' log && fail "$(cat log)"
  grep -qE '^tables [1-9]' log || fail 'no tables'
}
it_keeps_labels_of_figures_apart() {
  make_page || return 0
  asks 'for (const svg of document.querySelectorAll("figure svg")) {
  const all = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim()).map(t => [t.textContent, t.getBoundingClientRect()]);
  for (const [i, [a, x]] of all.entries()) for (const [b, y] of all.slice(i + 1))
    if (Math.min(x.right, y.right) - Math.max(x.left, y.left) > 2 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 4)
      say.push("overlap: " + a + " and " + b);
  say.push("figure " + all.length);
}' --window-size=1200,900
  grep -q '^overlap' log && fail "$(cat log)"
  [ "$(grep -c '^figure' log)" -eq 4 ] || fail 'not four figures'
}
it_follows_a_dark_theme() {
  make_page || return 0
  local script='const s = getComputedStyle(document.body); say.push(s.backgroundColor + " " + s.color)'
  asks "$script" --blink-settings=preferredColorScheme=0
  mv log dark
  asks "$script" --blink-settings=preferredColorScheme=1
  grep -q '^rgb(20, 24, 28) rgb(228, 232, 236)$' dark || fail "dark: $(cat dark)"
  grep -q '^rgb(255, 255, 255) rgb(28, 32, 36)$' log || fail "light: $(cat log)"
}

run_tests
