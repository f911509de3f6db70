"""python -m dtrun pull NAME: downloads a model, even if the program dtrun is not installed."""
import sys

from . import Error, pull


def main(words):
    if len(words) != 2 or words[0] != "pull" or not words[1] or words[1].startswith("-"):
        print("usage: python -m dtrun pull NAME, as in python -m dtrun pull smollm2", file=sys.stderr)
        return 2
    try:
        print(pull(words[1]))
    except Error as error:
        print(f"dtrun: {error}", file=sys.stderr)
        return 2 if error.kind == "input" else 1
    return 0


sys.exit(main(sys.argv[1:]))
