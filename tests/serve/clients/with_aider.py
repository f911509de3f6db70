"""The package aider: see shared.py and abilities.py. It is run as a program in a repository, and asks for changes in texts; the model is too small to make any."""

import os
import pathlib
import subprocess
import sys
import tempfile

from abilities import row, shows
from shared import BASE

AIDER = pathlib.Path(sys.executable).parent / "aider"


def asks(message, ends, *options):
    """Runs aider with a message; its record of the conversation then has one of these texts."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "add.py").write_text("def add(a, b):\n    return a - b\n")
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "begun"]):
            subprocess.run(["git", *command], cwd=folder, check=True)
        env = {**os.environ, "OPENAI_API_BASE": BASE, "OPENAI_API_KEY": "any", "HOME": folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        done = subprocess.run([AIDER, "--model", "openai/any", "--message", message, "--yes-always", "--no-check-update", "--no-show-model-warnings", "--analytics-disable",
                               "--no-pretty", "--no-detect-urls", "--map-tokens", "0", *options, "add.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
        told = pathlib.Path(folder, ".aider.chat.history.md").read_text()
    assert done.returncode == 0 and any(end in told for end in ends), (done, told)


for ability, option in (("plain", "--no-stream"), ("stream", "--stream")):
    with shows(ability):
        asks("What is the name of the function?", ["Tokens:"], "--chat-mode", "ask", option)
        asks("Make add return the sum.", ["Tokens:", "has hit a token limit"], "--edit-format", "whole", option)
row("aider", subprocess.run([AIDER, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1])
