"""Write a published head as safetensors, since its torch pickle is not read by dtrun.

    python convert_head.py IN OUT [--target MODEL]

IN is a folder with config.json and pytorch_model.bin (EAGLE-1, 2 and 3 as SafeAILab and SpecForge save them) or medusa_lm_head.pt
(Medusa), or such a file with config.json next to it. OUT gets config.json, unchanged except for the target's name (name_target.py) if
MODEL is given; without the name dtrun uses the head only if --draft names it. OUT also gets model.safetensors, with the tensors' names
and values unchanged, except that a prefix common to all names ("module.", "draft_model.", "model.") is removed. Only tensors are
unpickled (torch.load's weights_only): a pickle that would run code is refused.
"""
import os, pathlib, pickle, shutil, sys
import torch
from safetensors.torch import save_file
import name_target

PICKLES = "pytorch_model.bin", "medusa_lm_head.pt"
EAGLE, MEDUSA = ("fc.weight",), ("0.0.linear.weight",)  # tensors that every head of the kind has


def find(path):
    path = pathlib.Path(path)
    if path.is_file(): return path
    found = [path / n for n in PICKLES if (path / n).exists()]
    if not found: sys.exit(f"convert_head: {path}: found neither {' nor '.join(PICKLES)}")
    return found[0]


def without_prefix(tensors):
    for prefix in "module.", "draft_model.", "model.":
        if all(n.startswith(prefix) for n in tensors): tensors = {n[len(prefix):]: t for n, t in tensors.items()}
    return tensors


def main():
    if len(sys.argv) not in (3, 5) or sys.argv[3:4] not in ([], ["--target"]): sys.exit("usage: convert_head.py IN OUT [--target MODEL]")
    source, out, target = find(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[4] if sys.argv[4:] else None
    config = source.parent / "config.json"
    if not config.exists(): sys.exit(f"convert_head: {source.parent}: config.json is missing; dtrun needs it to know the head's shape")
    norm = name_target.norm_of(target) if target else None
    try: tensors = torch.load(source, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as e: sys.exit(f"convert_head: {source}: not a pickle of tensors only: {str(e).splitlines()[0]}")
    if not isinstance(tensors, dict) or not all(isinstance(t, torch.Tensor) for t in tensors.values()):
        sys.exit(f"convert_head: {source}: not a table of tensors by name")
    tensors = without_prefix(tensors)
    if not any(all(n in tensors for n in kind) for kind in (EAGLE, MEDUSA)):
        sys.exit(f"convert_head: {source}: not a head: has neither {EAGLE[0]} (EAGLE) nor {MEDUSA[0]} (Medusa), but {', '.join(sorted(tensors)[:4])} ...")
    out.mkdir(parents=True, exist_ok=True)
    # clones, because heads that share memory with each other are written once each
    save_file({n: t.contiguous().clone() for n, t in tensors.items()}, str(out / "model.safetensors.part"))
    os.replace(out / "model.safetensors.part", out / "model.safetensors")
    shutil.copy(config, out / "config.json")
    if target: name_target.write(out, target, norm)
    for n, t in sorted(tensors.items()): print(f"{n}: {str(t.dtype).removeprefix('torch.')} {list(t.shape)}")


if __name__ == "__main__": main()
