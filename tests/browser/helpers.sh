# Shared by the tests of pages in a real browser: Debian's chromium, headless.
. "$(dirname "$0")/../cli/helpers.sh"
dark=--blink-settings=preferredColorScheme=0 light=--blink-settings=preferredColorScheme=1

# browse PAGE ARGUMENTS...: chromium has a profile of its own here, and neither sandbox nor graphics card
browse() {
  local page=$1
  shift
  timeout 120 chromium --no-sandbox --headless=new --disable-gpu --user-data-dir="$PWD/profile" --window-size=1200,900 \
    "$@" "file://$PWD/$page" 2>/dev/null
}
# drive PAGE SCRIPT: writes driven.html, the page followed by a script that reports lines with say(). The script can use the functions below.
drive() {
  { cat "$1"; printf '<pre id="log"></pre>\n<script>\n%s\n%s\ndocument.getElementById("log").textContent = "LOG\\n" + said.join("\\n") + "\\nEND\\n";\n</script>\n' "$functions" "$2"; } >driven.html
}
# asks PAGE SCRIPT ARGUMENTS...: runs the script on the page; its lines are in the file log
asks() {
  drive "$1" "$2"
  looks driven.html "${@:3}"
}
looks() {
  browse "$1" --dump-dom "${@:2}" >dom
  grep -q 'LOG$' dom || fail 'the program did not run'
  sed -n '/LOG$/,/^END/p' dom | sed -e 1d -e '$d' >log
}
functions='const said = [], say = line => said.push(line.replace(/\s+/g, " "));
onerror = message => { say("error " + message); };
// Labels of a drawing that lie on one another, that a line goes through, or that it cuts off.
function check(svg) {
  const frame = svg.getBoundingClientRect();
  const labels = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim()).map(t => [t.textContent, t.getBoundingClientRect()]);
  for (const [i, [a, x]] of labels.entries()) {
    if (x.left < frame.left - 1 || x.right > frame.right + 1 || x.top < frame.top - 1 || x.bottom > frame.bottom + 1) say("cut: " + a);
    for (const [b, y] of labels.slice(i + 1))
      if (Math.min(x.right, y.right) - Math.max(x.left, y.left) > 2 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 4)
        say("overlap: " + a + " and " + b);
  }
  let lines = 0;
  for (const line of svg.querySelectorAll("path")) {
    if (getComputedStyle(line).fill !== "none") continue;
    const to = line.getScreenCTM(), length = line.getTotalLength();
    lines++;
    for (let at = 0; at <= length; at += 2) {
      const p = line.getPointAtLength(at).matrixTransform(to);
      const hit = labels.find(([, r]) => p.x > r.left + 1 && p.x < r.right - 1 && p.y > r.top + 4 && p.y < r.bottom - 4);
      if (hit) { say("crossed: " + hit[0]); break; }
    }
  }
  say("drawing " + labels.length + " " + lines);
}
// What is wider than the page.
function checkWidth(elements) {
  const most = document.documentElement.clientWidth;
  for (const e of elements) {
    const r = e.getBoundingClientRect();
    if (r.right > most + 1 || r.left < -1 || e.scrollWidth > e.clientWidth + 1) say("wide: " + (e.textContent.slice(0, 60) || e.id));
  }
}'
# A4 with margins of 1 cm is 718 pixels wide: the page as it is printed there, to be shown on a screen of that width.
as_printed() { sed 's/@media print/@media all/' "$1" >printed.html; }
printed_width=--window-size=718,1000
finds_nothing() { grep -E "^($1|error)" log && fail "$2"; return 0; }
# fits_a_phone PAGE: nothing is wider than 360 pixels when all is loaded. Chromium's window has at least 500, so the page is in a frame.
fits_a_phone() {
  printf '%s\n' '<pre id="log"></pre><iframe style="width:360px;height:740px;border:0"></iframe><script>const frame = document.querySelector("iframe");
frame.onload = () => { const d = frame.contentDocument.documentElement; document.getElementById("log").textContent = `widths ${d.scrollWidth} ${frame.contentWindow.innerWidth}`; };' \
    "frame.src = \"$1\";</script>" >phone.html
  browse phone.html --allow-file-access-from-files --virtual-time-budget=20000 --dump-dom >dom
  grep -oE 'widths [0-9]+ [0-9]+' dom >log || fail 'the page did not load'
  read -r _ needed there <log
  [ "$there" -eq 360 ] && [ "$needed" -le 360 ] || fail "$(cat log)"
}
# asks_phone WIDTH PAGE SCRIPT: like asks, in a frame that is WIDTH pixels wide
asks_phone() {
  drive "$2" "$3"
  printf '%s\n' "<pre id=\"log\"></pre><iframe style=\"width:$1px;height:740px;border:0\" src=\"driven.html\"></iframe>" '<script>document.querySelector("iframe").onload = event =>
  { document.getElementById("log").textContent = event.target.contentDocument.getElementById("log").textContent; };</script>' >phone.html
  looks phone.html --allow-file-access-from-files --virtual-time-budget=20000
}
