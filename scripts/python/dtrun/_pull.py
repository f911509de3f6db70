"""Downloads models by name: see pull."""
import os
import shutil
import subprocess
import sys

from ._bridge import Error, the_bridge, wrong


def _run(command, name):
    """Run a command and return the last line that it prints; its messages go to standard error."""
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)  # this Python's pip
    done = subprocess.run(command, env=dict(os.environ, PATH=path), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Error({"kind": "device", "message": f"pull: {name} could not be downloaded"})
    return (done.stdout.splitlines() or [""])[-1]


def pull(name):
    """Download a model and return its path; load(name) then finds it. name: "smollm2", or ORG/NAME[:Q4_K_M] on Hugging Face, for
    which the program dtrun or the package huggingface_hub is needed."""
    if not isinstance(name, str):
        raise wrong("pull: name must be a string")
    about = the_bridge().call("named_model", {"name": name})
    if about.get("script"):
        return _run(["bash", about["script"], name, about["folder"]], name)
    if "/" not in name:
        raise wrong(f"no model {name!r}: pull knows {about['names']}, and ORG/NAME on Hugging Face")
    program = shutil.which("dtrun")
    if not program:
        raise wrong(f"pull: {name} is on Hugging Face: dtrun pull {name} downloads it")
    return _run([program, "pull", name], name)
