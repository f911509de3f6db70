"""The page of dtrun serve in Chromium, used as a person does: serve.py URL WHAT [KEY]; WHAT is the name of a function below."""
import re
import sys
import tempfile

from chromium import Browser, Failure

url, what = sys.argv[1], sys.argv[2]


def check(fine, *why):
    if not fine:
        raise Failure(" ".join(str(part) for part in why))


def opened(b, view=""):
    b.go(url + "/" + view)
    b.until("document.body.classList.contains('open')")


def text(b, selector):
    return b.value(f"document.querySelector({selector!r})?.textContent ?? ''")


def choose(b, place, policy):
    b.value(f"(() => {{ const s = document.querySelector('#{place} select'); s.value = {policy!r}; s.onchange(); }})()")


def write_policy(b, old, new):
    b.value(f"(() => {{ const t = document.getElementById('own-text'); t.value = t.value.replace({old!r}, {new!r}); t.oninput(); }})()")


def run(b):
    b.value("document.getElementById('run').click()")
    b.until("!document.getElementById('run').hidden && document.getElementById('run').offsetParent")


def chat_answers(b):
    """A question is answered, with its numbers; the next answer may have another policy; retry, edit and new."""
    opened(b)
    b.value("document.getElementById('message').focus()")
    b.type("The dog?")
    b.press("Enter")
    b.until("document.querySelector('.turn .numbers b')")
    check(text(b, ".said") == "The dog?", "the question", text(b, ".said"))
    answer = text(b, ".turn .words")
    check(len(answer) > 10, "no answer")
    numbers = text(b, ".turn .numbers")
    check("rate" in numbers and "tokens per pass" in numbers and "tokens/s" in numbers and "accepted" in numbers, numbers)
    b.value("document.getElementById('origins').checked = true")
    choose(b, "chat-policy", "linear")
    b.value("[...document.querySelectorAll('.acts button')].find(b => b.textContent === 'retry').click()")
    b.until("document.querySelector('.turn .numbers b')?.textContent === 'linear'")
    check(text(b, ".turn .words").split() == answer.split(), "another policy gives another text")
    check(b.value("document.querySelectorAll('.turn .words .drafted').length") > 3, "no guess is coloured")
    b.value("document.getElementById('message').value = 'And the cat?'")
    b.value("document.getElementById('composer').requestSubmit()")
    b.until("document.querySelectorAll('.turn .numbers b').length === 2")
    b.value("[...document.querySelectorAll('.acts button')].find(b => b.textContent === 'edit').click()")
    check(b.value("document.querySelectorAll('.turn').length") == 0, "turns stay after an edit")
    check(b.value("document.getElementById('message').value") == "The dog?", "the text to edit")


def chat_stops(b):
    """Escape stops a long answer, and the part that has come stays."""
    opened(b)
    b.value("document.getElementById('tokens').value = ''")
    b.value("document.getElementById('schema').value = '{\"type\": \"array\", \"items\": {\"const\": 1}, \"minItems\": 1000}'")
    b.value("document.getElementById('message').focus()")
    b.type("Count.")
    b.press("Enter")
    b.until("document.querySelector('.turn .words')?.textContent.length > 20 && !document.getElementById('stop').hidden")
    b.press("Escape")
    b.until("document.getElementById('stop').hidden")
    check("stopped" in text(b, ".turn footer"), text(b, ".turn footer"))
    check(len(text(b, ".turn .words")) > 20, "the part is lost")
    b.value("document.getElementById('schema').value = '{\"type\": '")
    b.type("Again.")
    b.press("Enter")
    b.until("!document.getElementById('schema-error').hidden")
    check(b.value("document.getElementById('message').value") == "Again.", "the text is lost")
    b.value("[...document.querySelectorAll('.acts button')].find(b => b.textContent === 'retry').click()")
    check(b.value("document.querySelectorAll('.turn').length") == 1, "the turn is lost")


def chat_folds_reasoning(b):
    """Reasoning is in a fold above the answer, which closes when the answer begins; the next question is sent without it."""
    opened(b)
    grammar = 'root ::= "<think>" [a-f]{40} "</think>" [x-z]{5}'
    b.value(f"""(() => {{
      const before = window.fetch;
      window.fetch = (path, options) => {{
        if (!options?.body || !path.includes('chat')) return before(path, options);
        window.sent = JSON.parse(options.body);
        return before(path, {{ ...options, body: JSON.stringify({{ ...window.sent, grammar: {grammar!r} }}) }});
      }};
    }})()""")
    for n in (1, 2):
        b.value("document.getElementById('message').value = 'The <b>dog?'")
        b.value("document.getElementById('composer').requestSubmit()")
        b.until(f"document.querySelectorAll('.turn .numbers b').length === {n}")
    reasoning, answer = text(b, ".turn .reasoning div"), text(b, ".turn .words")
    check(len(reasoning) == 40 and set(reasoning) <= set("abcdef"), "reasoning", reasoning)
    check(len(answer.strip()) == 5 and set(answer.strip()) <= set("xyz"), "the answer", answer)
    check(b.value("(t => !t.hidden && !t.open)(document.querySelector('.turn .reasoning'))"), "the fold is open")
    check(b.value("window.sent.messages[1].content") == answer.strip(), "reasoning is sent again")


def chat_calls_tools(b):
    """Calls of tools are folded, with their arguments; results can be typed, and the answer goes on; a wrong tool is marked."""
    opened(b)
    b.value("""(() => {
      const before = window.fetch;
      window.fetch = (path, options) => { if (options?.body && path.includes('chat')) window.sent = JSON.parse(options.body); return before(path, options); };
    })()""")
    b.value("document.getElementById('tools').value = '{\"name\": '")
    b.value("document.getElementById('message').value = 'The dog?'")
    b.value("document.getElementById('composer').requestSubmit()")
    check("The tools are not JSON" in text(b, "#tools-error") and b.value("document.querySelectorAll('.turn').length") == 0, text(b, "#tools-error"))
    b.value("document.getElementById('tools-example').click()")
    check('"name": "get_weather"' in b.value("document.getElementById('tools').value"), "the example")
    tool = '[{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["<b>Rome"]}}, "required": ["city"], "additionalProperties": false}}]'
    b.value(f"document.getElementById('tools').value = {tool!r}")
    b.value("document.getElementById('tokens').value = 60")
    b.value("document.getElementById('composer').requestSubmit()")
    b.until("document.querySelector('.turn .numbers b')")
    check(text(b, "#tools-error") == "" and b.value("window.sent.tools[0].function.name") == "get_weather", text(b, "#chat-error"))
    check(text(b, ".call summary") == "Call of get_weather" and b.value("!document.querySelector('.call').open"), text(b, ".call summary"))
    check(text(b, ".call pre") == '{"city": "<b>Rome"}', text(b, ".call pre"))
    b.value("document.querySelector('.call summary').click()")
    check(b.value("document.querySelector('.call').open && document.querySelector('.call pre').offsetHeight > 10"), "the call does not open")
    n = b.value("document.querySelectorAll('.results textarea').length")
    check(n >= 1 and n <= b.value("document.querySelectorAll('.call').length"), "fields for results", n)
    b.value("document.querySelectorAll('.results textarea').forEach((field, i) => { field.value = (21 + i) + ' <i>degrees'; })")
    b.value("document.querySelector('.results').requestSubmit()")
    b.until("document.querySelectorAll('.turn .numbers b').length === 2")
    sent = b.value("window.sent.messages")
    check([m["role"] for m in sent] == ["user", "assistant", *["tool"] * n], sent)
    check(sent[1]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "<b>Rome"}'} and len(sent[1]["tool_calls"]) == n, sent)
    check(sent[2] == {"role": "tool", "tool_call_id": sent[1]["tool_calls"][0]["id"], "name": "get_weather", "content": "21 <i>degrees"}, sent)
    check("get_weather: 21 <i>degrees" in text(b, ".turn:nth-child(2) .said"), text(b, ".turn:nth-child(2) .said"))
    check(b.value("document.querySelectorAll('.turn:first-child .results, .turn b:not(.numbers b), .turn i').length") == 0, "an old form, or markup")
    b.value("[...document.querySelectorAll('.turn:nth-child(2) .acts button')].find(b => b.textContent === 'retry').click()")
    b.until("document.querySelectorAll('.turn .numbers b').length === 2")
    check(b.value("window.sent.messages.at(-1).role") == "tool", "retry loses the results")
    b.value("document.getElementById('message').value = 'And the cat?'")
    b.value("document.getElementById('composer').requestSubmit()")
    b.until("document.querySelectorAll('.turn .numbers b').length === 3")
    roles = [m["role"] for m in b.value("window.sent.messages")]
    check(roles[: n + 2] == ["user", "assistant", *["tool"] * n] and roles[-1] == "user", roles)
    b.value("[...document.querySelectorAll('.turn:nth-child(3) .acts button')].find(b => b.textContent === 'edit').click()")
    check(b.value("document.getElementById('message').value") == "And the cat?", "the text to edit")
    called = b.value("document.querySelectorAll('.turn:nth-child(2) .call').length")
    check(bool(called) == b.value("!!document.querySelector('.turn:nth-child(2) .results')"), "the form does not come back", called)


def chat_is_plain_text(b):
    """Markup in texts of a person or a model stays text."""
    opened(b)
    evil = '<img src=x onerror="document.title=1"><script>document.title=1</script> **bold** `code`'
    found = b.value(f"""import('/markdown.js').then(({{ markdown }}) => {{
      const place = document.createElement('div');
      place.append(markdown({evil!r} + '\\n\\n# Head\\n\\n- one\\n- two\\n\\n```c\\n<b>x</b>\\n```\\n\\n[link](javascript:1)'));
      document.body.append(place);
      return [place.querySelectorAll('img, script, b, a').length, ...['strong', 'code', 'h3', 'ul li', 'pre'].map(t => place.querySelectorAll(t).length)];
    }})""")
    check(found == [0, 1, 2, 1, 2, 1], "elements", found)
    b.value(f"document.getElementById('message').value = {evil!r}")
    b.value("document.getElementById('composer').requestSubmit()")
    b.until("document.querySelector('.turn .numbers b')")
    check(b.value("document.querySelectorAll('.turn img, .turn script').length") == 0, "markup became elements")
    check(b.value("document.title") == "dtrun", "a script ran")


def base_model_continues(b):
    """Without a chat template: the page says so, and continues a text."""
    opened(b)
    check("no chat template" in text(b, "#welcome") and "dtrun pull" in text(b, "#welcome"), text(b, "#welcome"))
    b.value("document.querySelector('.ideas button').click()")
    b.until("document.querySelector('.turn .numbers b')")
    check(text(b, ".turn .given") == "It was a dark night, and", "the beginning")
    check(text(b, ".turn .words").startswith(" it was a little"), text(b, ".turn .words"))


def playground_draws(b):
    """Two policies, one text; a tree for each pass; slider and arrow keys; a link that contains everything."""
    opened(b, "#playground")
    choose(b, "first-policy", "dynatree")
    b.value("document.getElementById('run').click(), document.getElementById('prompt').value = 'Something else'")  # for the next run
    b.until("!document.getElementById('verdict').hidden")
    check("Equal to plain decoding: all 60 tokens" in text(b, "#verdict"), text(b, "#verdict"), text(b, "#play-error"))
    b.press("Home")
    b.until("document.querySelectorAll('.lane .tree svg').length === 2")
    marks = b.value("['root', 'accepted', 'bonus', 'corrected'].map(c => document.querySelectorAll('.lane:first-child g.' + c).length)")
    check(marks[0] == 1 and marks[2] + marks[3] == 1, "marks", marks)
    check(b.value("/\\.\\d+/.test(document.querySelector('.lane:first-child g.kept tspan').textContent)"), "no probability")
    check(text(b, "#place").startswith("pass 1 of "), text(b, "#place"))
    first = b.value("document.querySelector('.lane:first-child .tree').innerHTML")
    b.press("ArrowRight")
    check(text(b, "#place").startswith("pass 2 of "), text(b, "#place"))
    check(b.value("document.querySelector('.lane:first-child .tree').innerHTML") != first, "the same tree")
    b.press("ArrowLeft")
    check(b.value("document.querySelector('.lane:first-child .tree').innerHTML") == first, "another tree")
    for width in (None, 390):  # a tree that is wider than its panel shows its root
        b.show(width)
        b.until(f"innerWidth {'> 500' if width is None else '=== 390'}")
        for lane in (1, 2):
            hidden = b.value("""((lane, steps) => {
              const panel = document.querySelector(`.lane:nth-child(${lane}) .tree`), hidden = [];
              for (let i = 0; i < steps; i++) {
                const outer = panel.getBoundingClientRect(), root = panel.querySelector('g.root').getBoundingClientRect();
                if (root.left < outer.left || root.right > outer.right || root.top < outer.top || root.bottom > outer.bottom) hidden.push(i);
                document.getElementById('to-next').click();
              }
              document.getElementById('to-first').click();
              return hidden;
            })(LANE, 10)""".replace("LANE", str(lane)))
            check(not hidden, "root out of sight", width, lane, hidden)
    b.show(None)
    b.press("End")
    texts = b.value("[...document.querySelectorAll('.lane .words')].map(e => e.textContent)")
    check(texts[0] == texts[1] and len(texts[0]) > 100, "texts at the end", texts)
    b.value("(() => { const s = document.getElementById('slider'); s.value = 3; s.dispatchEvent(new Event('input')); })()")
    check(text(b, "#place").startswith("pass 3 of "), "the slider")
    b.value("navigator.clipboard.writeText = async text => { window.copied = text; }")
    b.value("document.getElementById('share').click()")
    link = b.until("window.copied")
    b.go("about:blank")
    b.go(link)
    b.until("document.body.classList.contains('open')")
    check(b.value("document.querySelector('#first-policy select').value") == "dynatree", "the link's policy")
    check(b.value("document.getElementById('lanes').children.length") == 0, "a link runs by itself")


def playground_draws_calls(b):
    """With a tool the text is a call: both policies give the same one, and the tree has nodes that the grammar forces. The link contains the tool."""
    opened(b, "#playground")
    choose(b, "first-policy", "rate")
    b.value("document.getElementById('play-tool').value = '{'")
    b.value("document.getElementById('run').click()")
    check("The tools are not JSON" in text(b, "#play-tool-error") and b.value("document.getElementById('play-tool-field').open"), text(b, "#play-tool-error"))
    check(b.value("document.getElementById('lanes').children.length") == 0, "it runs")
    b.value("document.getElementById('play-tool-example').click()")
    run(b)
    check(text(b, "#play-tool-error") == "" and "Equal to plain decoding: all 60 tokens" in text(b, "#verdict"), text(b, "#verdict"), text(b, "#play-error"))
    b.value("document.activeElement.blur()")  # the field of the tool
    b.press("End")
    words = text(b, ".lane:first-child .words")
    check('{"name": "get_weather", "arguments": {"city": "' in words, words)
    b.press("Home")
    b.until("document.querySelectorAll('.lane .tree svg').length === 2")
    check("forced" in b.value("document.querySelector('.lane:first-child .tree').innerHTML"), "no node is shown as forced")
    b.value("navigator.clipboard.writeText = async text => { window.copied = text; }")
    b.value("document.getElementById('share').click()")
    link = b.until("window.copied")
    b.go("about:blank")
    b.go(link)
    b.until("document.body.classList.contains('open')")
    check('"name": "get_weather"' in b.value("document.getElementById('play-tool').value") and b.value("document.getElementById('play-tool-field').open"), "the link's tool")


def playground_stops(b):
    """Escape and a button stop a run: the passes that have come stay, its slot is free, and another run can begin."""
    opened(b, "#playground")
    choose(b, "first-policy", "your policy")
    write_policy(b, "Hedge:draft(tree)", "Hedge:draft(tree) for _ = 1, 500000 do end")  # some milliseconds for each pass
    for stop in (lambda: b.press("Escape"), lambda: b.value("document.getElementById('play-stop').click()")):
        b.value("document.getElementById('play-tokens').value = 1000")
        b.value("document.getElementById('run').click()")
        b.until("document.querySelector('.lane .words')?.textContent.length > 60 && !document.getElementById('play-stop').hidden")
        stop()
        b.until("document.getElementById('play-stop').hidden")
        check(text(b, "#play-error") == "Stopped.", text(b, "#play-error"), text(b, "#verdict"))
        check(len(text(b, ".lane .words")) > 60, "the passes are lost")
        b.until("fetch('/metrics').then(r => r.text()).then(t => /^llamacpp:requests_processing 0$/m.test(t))")
        b.value("document.getElementById('play-tokens').value = 20")
        run(b)
        check("all 20 tokens" in text(b, "#verdict"), text(b, "#verdict"), text(b, "#play-error"))


def playground_marks_mistakes(b):
    """The line of a policy's error is shown: while typing, and when it fails in a run."""
    opened(b, "#playground")
    choose(b, "first-policy", "your policy")
    run(b)
    check("hedge took" in text(b, "#verdict"), text(b, "#verdict"), text(b, "#play-error"))
    faster = float(re.search(r"speedup ([0-9.]+)x", text(b, "#verdict")).group(1))
    if faster != 1:  # a slower policy is not shown as a success
        check((b.value("document.getElementById('verdict').className") == "good") == (faster > 1), text(b, "#verdict"))
    write_policy(b, "tree:draft_step", "tree:draft_stp")
    run(b)
    check("policy.lua:9:" in text(b, "#play-error") and "draft_step" in text(b, "#play-error"), text(b, "#play-error"))
    check(text(b, "#gutter .wrong").strip() == "9", "line", text(b, "#gutter .wrong"))
    b.value("document.getElementById('jump').click()")
    check("draft_stp" in b.value("(t => t.value.slice(t.selectionStart, t.selectionEnd))(document.getElementById('own-text'))"), "the line is not selected")
    write_policy(b, "for _", "fr _")
    b.until("document.querySelector('#gutter .wrong')?.textContent.trim() === '8'")
    check(b.value("document.getElementById('play-error').hidden"), "the error of another text stays", text(b, "#play-error"))
    write_policy(b, "fr _", "while true do end for _")
    write_policy(b, "tree:draft_stp", "tree:draft_step")
    b.until("!document.querySelector('#gutter .wrong')")
    run(b)
    check("0.02 s" in text(b, "#play-error"), text(b, "#play-error"))


def works_by_keyboard(b):
    """Only keys are used, from the address to a tree: each element that has the focus shows it."""
    opened(b)
    names = []
    for _ in range(40):
        b.press("Tab")
        names.append(b.value("(e => e.id || e.localName)(document.activeElement)"))
        if names[-1] == "message":
            break
        if names[-1] == "body":  # the end of the page
            continue
        outline = b.value("getComputedStyle(document.activeElement).outlineStyle")
        check(outline != "none", "no mark of the focus on", names[-1])
    check("to-playground" in names and names[-1] == "message", names)
    b.type("The cat")
    b.press("Enter")
    b.until("document.querySelector('.turn .numbers b')")
    b.value("document.activeElement.blur()")
    while b.value("document.activeElement.id") != "to-playground":
        b.press("Tab")
    b.press("Enter")
    b.until("!document.getElementById('playground').hidden")
    b.press("Enter", modifiers=2)
    b.until("!document.getElementById('verdict').hidden")
    b.value("document.activeElement.blur()")
    b.press("End")
    b.press("ArrowLeft")
    at = [int(word) for word in text(b, "#place").split() if word.isdigit()]
    check(at[0] == at[1] - 1, text(b, "#place"))


def is_readable_everywhere(b):
    """Light, dark, and 360 pixels: nothing is wider than the page, and letters have enough contrast with their background."""
    contrast = """(() => {
      const light = c => { const [r, g, b] = c.map(x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const rgb = text => text.match(/[\\d.]+/g).map(Number);
      const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] !== 0) return c; } return [255, 255, 255]; };
      const low = [];
      for (const e of document.querySelectorAll('main:not([hidden]) *, header *')) {
        if (!e.offsetParent || e.closest('svg, [disabled], .lane.done') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
        const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e).slice(0, 3)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) low.push(e.textContent.slice(0, 30) + ' ' + ratio.toFixed(2));
      }
      return low;
    })()"""
    for view in ("", "#playground"):
        opened(b, view)
        if view:
            choose(b, "first-policy", "your policy")
            run(b)
        else:
            b.value("document.querySelector('.ideas button').click()")
            b.until("document.querySelector('.turn .numbers b')")
        for dark in (False, True):
            for width in (None, 360):
                b.show(width, dark)
                needed, there = b.value("[document.documentElement.scrollWidth, innerWidth]")
                check(needed <= there, view, "width", width, needed, there)
                wide = b.value("[...document.querySelectorAll('main:not([hidden]) *')].filter(e => e.offsetParent && !e.closest('svg, .tree, pre, #editor')"
                               " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.id || e.className)")
                check(not wide, view, "wide", width, wide)
                low = b.value(contrast)
                check(not low, view, "dark" if dark else "light", "contrast", low)
        ground = b.value("getComputedStyle(document.body).backgroundColor")
        check(ground == "rgb(21, 24, 27)", "dark", ground)
        b.show(None, False)


def asks_for_the_key(b):
    """With a key: the page asks for it, says if it is wrong, and keeps it in the tab only."""
    b.go(url + "/")
    b.until("document.getElementById('key').open")
    b.press("Escape")
    b.until("!document.getElementById('again').hidden")
    check("requires a key" in text(b, "#waits"), text(b, "#waits"))
    b.value("document.getElementById('again').click()")
    b.until("document.getElementById('key').open")
    b.type("wrong")
    b.press("Enter")
    b.until("!document.getElementById('key-error').hidden && document.getElementById('key').open")
    b.type(sys.argv[3])
    b.press("Enter")
    b.until("document.body.classList.contains('open')")
    check(b.value("localStorage.length") == 0, "the key is stored")
    b.errors[:] = [error for error in b.errors if "401" not in error]
    opened(b)


browser = Browser(tempfile.mkdtemp(dir="."))
try:
    globals()[what](browser)
    check(not browser.errors, "the console:", browser.errors)
    foreign = [asked for asked in browser.asked if not asked.startswith((url, "about:", "blob:", "data:"))]
    check(not foreign, "asked elsewhere:", foreign)
except Failure as failure:
    sys.exit(str(failure))
finally:
    browser.close()
