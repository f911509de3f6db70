"""Make cascades.json: the trees that the policy cascade grows on scripted pairs with two drafts. They are computed from
its rule, implemented again as simply as possible, with the trees of make_policies.py. Run it from anywhere:

    python tests/golden/make_cascades.py

The first draft's own text is known beforehand: its likeliest tokens, one after the other. A round is a chain of the
second draft from the last existing token of that text. The tokens with which the chain begins like the text are
kept, and one more token of the text. Read by tests/lua/test_cascade.lua.
"""
import json, pathlib
from make_policies import VOCAB, Tree, alone, random, table


def likeliest(tree, u, draft):
    return tree.candidates(u, draft)[0]


class Cascade:
    def __init__(self, K, reviewed, tail):
        self.__dict__.update(locals())

    def grow(self, tree):
        text = Tree(tree.text, tree.pair)  # the first draft's own
        for u in range(self.reviewed):
            text.add(u, likeliest(text, u, "draft")[0])
        text, tree.kept, node = text.token[1:], [], 0
        while text:
            u, same = node, True
            for n in range(min(self.K, len(text) - 1)):
                u = tree.add(u, likeliest(tree, u, "draft2")[0])
                same = same and tree.token[u] == text[0]
                if same:
                    node = u
                    tree.kept.append(u), text.pop(0)
            node = tree.add(node, text.pop(0))
            tree.kept.append(node)
        for _ in range(self.tail):
            node = tree.add(node, likeliest(tree, node, "draft2")[0])
            tree.kept.append(node)

    def observe(self, tree, accepted, bonus):
        pass


def main():
    pairs = {}
    for name, sure in [("sure", 5), ("unsure", 1.5)]:
        pairs[name] = {"draft": table(1, 6, sure), "target": table(2, 4, 3)}
        other = table(1, 6, sure)  # the second draft equals the first in two contexts of three
        pairs[name]["draft2"] = {c: p if int(c) % 3 else other[c] for c, p in pairs[name]["draft"].items()}
    cases = []
    for K, reviewed, tail in [(3, 4, 2), (1, 5, 0), (4, 9, 3), (8, 6, 1), (2, 0, 4), (2, 1, 1)]:
        for pair in pairs:
            params = {"K": K, "reviewed": reviewed, "tail": tail}
            prompt = [int(t) for t in random.integers(0, VOCAB, 6)]
            cases.append({"pair": pair, "params": params, "prompt": prompt,
                          "iterations": alone(pairs[pair], Cascade(**params), prompt, 12)})
    path = pathlib.Path(__file__).parent / "cascades.json"
    out = {"vocab": VOCAB, "pairs": pairs, "cases": cases}
    path.write_text(json.dumps(out, separators=(",", ":")).replace('{"pair":', '\n{"pair":') + "\n")
    print(f"{len(cases)} cases, {path.stat().st_size} bytes")


main()
