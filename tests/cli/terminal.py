"""Runs a command at a terminal of its own, and prints the lines that are then on its screen:

    terminal.py [PATTERN KEYS]... -- COMMAND...

Each PATTERN, an expression, is waited for in what the command writes; then KEYS are typed (^C: Ctrl-C). The line where the
cursor is at the end comes last: a shell's prompt would land on it. Exit status: the command's, or 124 where a pattern does not come.
"""
import os
import pty
import re
import select
import sys
import time

PATIENCE = 60  # seconds


def screen_of(text):
    """The lines of a terminal that is wide enough: \\r, \\n and ESC [ K count, colours do not."""
    lines, column = [[]], 0
    for piece in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.", text, re.DOTALL):
        if piece == "\r":
            column = 0
        elif piece == "\n":
            lines.append([])
        elif piece == "\x1b[K":
            del lines[-1][column:]
        elif not piece.startswith("\x1b"):
            lines[-1][column:column + 1] = piece
            column += 1
    return ["".join(line) for line in lines]


def main():
    at = sys.argv.index("--")
    script, command = sys.argv[1:at], sys.argv[at + 1:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    written, seen, end = "", 0, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the command has ended
                piece = b""
            if not piece:
                break
            written += piece.decode(errors="replace")
        found = script and re.search(script[0], written[seen:])
        if found:
            os.write(terminal, script[1].replace("^C", "\x03").encode())
            seen += found.end()
            del script[:2]
    print("\n".join(screen_of(written)))
    if script or time.monotonic() >= end:
        os.kill(child, 9)
        os.waitpid(child, 0)
        sys.exit(124)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
