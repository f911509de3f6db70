#!/usr/bin/env python3
"""Checks the prose of guides, comments and messages with proselint: some of its checks, and our own in style.txt.

lint.py [--count] [ROOT [FILE ...]] prints `file:line: text: what to write instead` for each finding, and exits with 1
if there are any. Without files it reads the whole tree. --count prints how many each rule has in each folder.
"""
import bisect
import collections
import importlib
import multiprocessing
import os
import re
import sys

from proselint import tools

tools.memoize = lambda check: check  # before the checks are imported: no cache in the home folder

HERE = os.path.dirname(os.path.abspath(__file__))
GAP = "\0"  # between sentences that have nothing to do with each other; neither part of a word nor white space
CODE = "\1"  # in place of `code`, "words" and links
SKIPPED = re.compile(r"(?:^|/)(?:build[^/]*|\.git|golden|data|mini-[^/]*)$|^shared$")
REPORT = re.compile(r"tests/bench/results/.*report\.md$")  # written by a program
TWO_WORDS = re.compile(r"[A-Za-z]{2,}[,;:]? +[a-z]{2,}")  # a string without them is no message
PROGRAM = re.compile(r"[;{}]\s*\n|\bend\s*\n|^\s*local ", re.M)  # a string of several lines in another language

# Strings come with comments, so that a mark of one inside the other counts for nothing. `string` may be a message.
C = r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])*'"""
JS = (r"""(?P<comment>(?<![:\w])//[^\n]*|/\*.*?\*/)|"""
      r"""(?P<string>"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|'(?:\\.|[^'\\\n])*'""")
LUA = (r"""(?P<comment>--\[(?P<c>=*)\[.*?\](?P=c)\]|--[^\n]*)|"""
       r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\[(?P<s>=*)\[.*?\](?P=s)\])""")
PYTHON = (r'''(?P<comment>\#[^\n]*|^[ \t]*""".*?""")|(?P<string>"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')''')
# Quotes in shell scripts nest and span lines, so that only those of one line are seen.
SHELL = (r"""(?P<comment>(?:^|(?<=\s))\#(?!!)[^\n]*)|"""
         r"""(?:\b(?:echo|fail|printf)[ ])(?P<string>"(?:\\.|[^"\\\n])*"|'[^'\n]*')|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
LANGUAGES = {ending: re.compile(pattern, re.S | re.M)
             for endings, pattern in (
                 (".c .h .cu .cuh .cpp", C), (".js", JS), (".lua", LUA), (".py", PYTHON), (".sh .cmake", SHELL))
             for ending in endings.split()}
MARKS = {"comment": re.compile(r"""^\s*(?:/\*+|//+|--\[=*\[|--+|\#+|"\"")|(?:\*/|\]=*\]|"\"")$|^[ \t]*\*(?!\*)""", re.M),
         "string": re.compile(r"""\A(?:["'`]|\[=*\[)|(?:["'`]|\]=*\])\Z|\\[nrt]|\\(?=["'])""")}


def filled(filling):
    """Replaces each character of a match, so that places in the text stay."""
    return lambda match: re.sub(r"[^\n]", filling, match.group())


def without_code(text, more=""):
    """Without `code`, names of files, functions with a dot, and options."""
    files = r"[\w./*-]+\.(?:cuh?|[ch]|lua|md|sh|py|txt|jsonl?|cmake|gguf)\b"
    return re.sub(rf"`[^`\n]+`|{files}|\b\w+[.:]\w+\(|(?<!\w)--?\w[\w-]*" + more, filled(CODE), text)


def without_quotes(text):
    return without_code(text, r'|"[^"\n]{1,80}"')


def prose_of_guide(text):
    text = re.sub(r"^```.*?^```[^\n]*", filled(GAP), text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)\s]*\)|https?://\S+|^ {4}.*", filled(CODE), text, flags=re.M)
    text = re.sub(r"^ *(?:[-*]|#+|\d+\.) +|\|", filled(GAP), text, flags=re.M)
    yield "guide", 0, without_quotes(text)


def prose_of_source(text, language):
    """Comments and messages; those that follow each other are one."""
    kind, begin, end, piece = None, 0, 0, ""
    for match in language.finditer(text):
        new = "comment" if match["comment"] else "message" if match["string"] else None
        if not new:
            continue
        group = "comment" if new == "comment" else "string"
        first = match.start(group)
        words = MARKS[group].sub(filled(" "), match[group])
        between = text[end:first]
        if new == kind and not between.strip() and between.count("\n") <= 1:
            piece += between + words
        else:
            if piece:
                yield kind, begin, piece
            kind, begin, piece = new, first, words
        end = match.end()
    if piece:
        yield kind, begin, piece


def prose_of(path, text):
    """(kind, place in the text, prose) of all that is for readers: kind is guide, comment or message."""
    ending = os.path.splitext(path)[1]
    if ending == ".md":
        pieces = prose_of_guide(text)
    else:
        pieces = prose_of_source(text, LANGUAGES.get(ending) or LANGUAGES[".sh"])
    for kind, begin, piece in pieces:
        if kind == "comment":
            piece = without_quotes(piece)
        elif kind == "message":
            # Strings of tests are prompts and faults.
            if path.startswith("tests/") or not TWO_WORDS.search(piece) or PROGRAM.search(piece):
                continue
            piece = without_code(piece)
        yield kind, begin, re.sub(r"\n(?=[ \t]*\n)", GAP, piece)


def files_of(root):
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        folders[:] = sorted(f for f in folders if not SKIPPED.search(os.path.normpath(os.path.join(inside, f))))
        for name in sorted(names):
            path = os.path.normpath(os.path.join(inside, name))
            ending = os.path.splitext(name)[1]
            if ending in LANGUAGES or ending == ".md" and not REPORT.match(path) or name == "CMakeLists.txt":
                yield path
            elif not ending:
                with open(os.path.join(root, path), "rb") as file:
                    if re.match(rb"#!.*sh\n", file.read(40)):
                        yield path


def prose_of_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        text = file.read()
    return text, list(prose_of(path, text))


Rule = collections.namedtuple("Rule", "kinds but name pattern instead")


def read_style():
    """The rules of style.txt; and proselint's checks that it names, by what they are for: all, guides or words."""
    rules, checks = [], collections.defaultdict(list)
    name = kinds = but = None
    with open(os.path.join(HERE, "style.txt"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("# "):
                continue
            heading = re.fullmatch(r"\[(\S+)\](?: in ([\w, ]+?))?(?: but (.+))?", line)
            proselint = re.fullmatch(r"proselint ?(guides|words)?: (.*)", line)
            if heading:
                name, kinds, but = heading[1], heading[2] and heading[2].split(", "), tuple((heading[3] or "").split())
            elif proselint:
                checks[proselint[1] or "all"] += [c for check in proselint[2].split() for c in checks_of(check)]
            elif " => " in line:
                pattern, instead = line.split(" => ")
                rules.append(Rule(kinds, but, name, pattern.replace(" ", r"\s+"), instead))
            else:
                sys.exit(f"style.txt:{number}: neither [RULE] nor PATTERN => WHAT TO WRITE INSTEAD")
    return rules, checks


def checks_of(name):
    """(name, function) of the checks of one of proselint's modules: all of them, or the one that the name ends with."""
    module, _, function = name.partition(".check")
    functions = vars(importlib.import_module("proselint.checks." + module))
    wanted = ["check" + function] if ".check" in name else sorted(f for f in functions if f.startswith("check"))
    return [(name, functions[f]) for f in wanted]


RULES, CHECKS = read_style()


def words_of(place):
    return {word for _, _, piece in prose_of_file(*place)[1] for word in re.findall(r"[A-Za-z]{3,}", piece.lower())}


def misspelled(words):
    """What proselint says of single words: (word, check, its message)."""
    text = "\n" + "\n\n".join(sorted(words)) + "\n"
    return {(text[start - 1:end].strip(), name, message)
            for name, check in CHECKS["words"] for start, end, _, message, _ in check(text)}


def lint(task):
    """The findings in one file: (place, path, line, rule, text, what to write instead)."""
    root, path, bad_words = task
    text, prose = prose_of_file(root, path)
    found = set()
    for kind in ("guide", "comment", "message"):
        joined, starts = "", []  # where each piece begins in the joined text, and where in the file
        for begin, piece in (p[1:] for p in prose if p[0] == kind):
            joined += "\n" + GAP + "\n"
            starts.append((len(joined), begin))
            joined += piece
        if not joined:
            continue
        joined += "\n" + GAP
        patterns = [rule[-3:] for rule in RULES
                    if (not rule.kinds or kind in rule.kinds) and not (rule.but and path.startswith(rule.but))]
        patterns += [(name, rf"\b{word}\b", message) for word, name, message in bad_words]
        errors = [(name, instead, tools.existence_check(joined, [pattern], "", "", require_padding=False))
                  for name, pattern, instead in patterns]
        for name, check in CHECKS["all"] + (CHECKS["guides"] if kind == "guide" else []):
            errors += [(name, error[3], [error]) for error in check(joined)]
        for name, instead, places in errors:
            for start, end, *_ in places:  # proselint counts from 1, or from the character before
                words = joined[start - 1:end]
                start += len(words) - len(words.lstrip(" \n\t.,;:?!()" + GAP + CODE)) - 1
                at, begin = starts[max(0, bisect.bisect(starts, (start, len(text))) - 1)]
                words = re.sub(rf"[\s{GAP}{CODE}]+", " ", words).strip(" .,;:?!()")
                place = begin + start - at
                found.add((place, path, text.count("\n", 0, place) + 1, name, words, instead))
    return sorted(found)


def main(arguments):
    count = "--count" in arguments
    root, *files = [a for a in arguments if a != "--count"] or [os.path.join(HERE, "../..")]
    files = files or list(files_of(root))
    with multiprocessing.Pool() as pool:
        words = set().union(*pool.imap_unordered(words_of, [(root, f) for f in files], 16))
        bad_words = sorted(misspelled(words))
        findings = [f for found in pool.imap(lint, [(root, f, bad_words) for f in files], 16) for f in found]
    if count:
        table = collections.Counter((rule, os.path.dirname(path) or ".") for _, path, _, rule, *_ in findings)
        for (rule, folder), number in sorted(table.items()):
            print(f"{number}\t{rule}\t{folder}")
    else:
        for _, path, line, _, words, instead in findings:
            print(f"{path}:{line}: {words}: {instead}")
    print(f"{len(findings)} findings in {len(files)} files", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
