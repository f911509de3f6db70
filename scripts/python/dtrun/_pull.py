"""Brings models by name: see pull."""
import os
import shutil
import subprocess
import sys

from ._bridge import Error, the_bridge, wrong


def _run(command, name):
    """The last line that a command prints; its messages go to standard error."""
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)  # this Python's pip
    done = subprocess.run(command, env=dict(os.environ, PATH=path), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Error({"kind": "device", "message": f"pull: {name} was not brought"})
    return (done.stdout.splitlines() or [""])[-1]


def pull(name):
    """Brings a model and gives its path; load(name) then finds it. name: "smollm2", or ORG/NAME[:Q4_K_M] of Hugging Face, which
    the program dtrun or the package huggingface_hub downloads."""
    if not isinstance(name, str):
        raise wrong("pull: the name is no text")
    about = the_bridge().call("named_model", {"name": name})
    if about.get("script"):
        return _run(["bash", about["script"], name, about["folder"]], name)
    if "/" not in name:
        raise wrong(f"no model is called {name!r}: pull knows {about['names']}, and ORG/NAME of Hugging Face")
    program = shutil.which("dtrun")
    if not program:
        raise wrong(f"pull: {name} is of Hugging Face: dtrun pull {name} brings it")
    return _run([program, "pull", name], name)
