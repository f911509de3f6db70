"""Say in a draft head's config.json which target it was made for, so that dtrun uses it by default (models/README.md).

    python name_target.py HEAD TARGET

HEAD is the head's folder; TARGET the model that it was trained for, or any quantized form of that: a folder or a GGUF file. Needs
libdtrun.so (built here, or in $DTRUN_LIBRARY), which reads the target's final norm, and no other package.
"""
import json, os, pathlib, sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import dtrun


def norm_of(target):
    """By which a head's files name it: FNV-1a 64 of its final norm in bfloat16."""
    try: return dtrun.look(target)["norm"]
    except dtrun.Error as e: sys.exit(f"name_target: {e}")


def write(head, target, norm):
    path = pathlib.Path(head) / "config.json"
    try: config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e: sys.exit(f"name_target: {path}: {e}; expected a head's configuration")
    if not isinstance(config, dict): sys.exit(f"name_target: {path}: no JSON object, expected a head's configuration")
    config["dtrun_target"] = {"name": os.path.basename(os.path.normpath(target)), "final_norm": norm}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    os.replace(part, path)


def main():
    if len(sys.argv) != 3: sys.exit("usage: name_target.py HEAD TARGET")
    write(sys.argv[1], sys.argv[2], norm_of(sys.argv[2]))


if __name__ == "__main__": main()
