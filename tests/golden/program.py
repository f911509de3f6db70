"""A program that answers commands, which tests/golden/commands.h describes."""
import json, subprocess


class Program:
    def __init__(self, *command): self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, kind, text):
        data = text.encode()
        self.process.stdin.write(f"{kind} {len(data)}\n".encode() + data)
        self.process.stdin.flush()

    def ask(self, kind, text):
        """The answer, JSON, or None; then `refusal` is the message."""
        self.tell(kind, text)
        line = self.process.stdout.readline().decode().rstrip("\n")
        self.refusal = line[2:] if line.startswith("E ") else None
        return None if self.refusal is not None else json.loads(line)
