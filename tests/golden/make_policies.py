"""Make policies.json: the trees that token_recycling, sequoia, caddtree, ddtree, talon, adaptive, lookahead, suffix,
echo and rate grow on scripted pairs. Each is computed from its rule, implemented again as simply as possible: the rules of
the papers, and the formula of rate (rate.py). Run it from anywhere:

    python tests/golden/make_policies.py

Both models of a pair are tables: the draft model has a distribution after each last token of a text, the target one
after each pair of last tokens. Each table names a few tokens; the others share the remaining probability. A case is
a policy with its parameters and, for each iteration, the tree as "parent>token ..." in the order of creation, and
the nodes that are verified. Read by tests/lua/test_policy_rivals.lua.
"""
import functools, itertools, json, math, pathlib
import numpy as np
from rate import COSTS, EXPENSIVE, UNEVEN, Rate

VOCAB = 14
random = np.random.default_rng(7)


def table(order, named, sure):
    """Returns {context: {token: p}}. p falls, and differs from any other by enough that rounding decides nothing."""
    rules = {}
    for context in itertools.product(range(VOCAB), repeat=order):
        p = np.sort(random.random(named) + 0.01)[::-1] ** sure
        p = p / p.sum() * (0.9 + 0.08 * random.random())
        tokens = random.permutation(VOCAB)[:named]
        rules[" ".join(map(str, context))] = {str(t): round(float(x), 6) for t, x in zip(tokens, p)}
    return rules


def law(rules, text, order):
    named = {int(t): p for t, p in rules[" ".join(map(str, text[-order:]))].items()}
    rest = (1 - sum(named.values())) / (VOCAB - len(named))
    return [named.get(t, rest) for t in range(VOCAB)]


class Tree:
    def __init__(self, text, pair, left=None):
        self.text, self.pair, self.left = text, pair, left
        self.parent, self.token, self.p, self.depth = [-1], [text[-1]], [1.0], [0]
        self.kept, self.pauses = None, False

    def path(self, u):
        return [] if u == 0 else self.path(self.parent[u]) + [self.token[u]]

    def child(self, u, token):
        for v in range(1, len(self.token)):
            if self.parent[v] == u and self.token[v] == token:
                return v

    def add(self, u, token, p=1.0):
        v = self.child(u, token)
        if v is not None:
            return v
        self.parent.append(u), self.token.append(token)
        self.p.append(self.p[u] * p), self.depth.append(self.depth[u] + 1)
        return len(self.token) - 1

    def candidates(self, u, draft="draft"):
        """Returns (token, p) of a draft model after u, likeliest first."""
        p = law(self.pair[draft], self.text + self.path(u), 1)
        return sorted(enumerate(p), key=lambda c: (-c[1], c[0]))

    def says(self, u):
        """Returns the target's tokens after u, likeliest first."""
        p = law(self.pair["target"], self.text + self.path(u), 2)
        return sorted(range(VOCAB), key=lambda t: (-p[t], t))

    def best(self, nodes):
        return sorted(nodes, key=lambda u: (-self.p[u], u))

    def accept(self):
        """Returns the accepted nodes, and the target's token after the last one."""
        kept = set(range(len(self.token))) if self.kept is None else {0} | set(self.kept)
        u, path = 0, []
        while True:
            v = self.child(u, self.says(u)[0])
            if v is None or v not in kept:
                return path, self.says(u)[0]
            path.append(v)
            u = v


# ---- shapes: which ranks follow which, for a given number of nodes ----

def sequoia_value(p, total, depth):
    """Sequoia's dynamic program: the largest expected number of tokens for `total` nodes on at most `depth` levels
    below a node."""
    @functools.lru_cache(None)
    def value(n, d, b):  # of n nodes: its children from rank b on, and what is below these
        if n == 0 or d == 0 or b >= len(p):
            return 0.0
        return max(p[b] * (1 + value(m - 1, d - 1, 0)) + value(n - m, d, b + 1) for m in range(1, n + 1))

    return value(total, depth, 0)


def shape(p, total, depth):
    """Returns a tree of that value, as paths of ranks from 0 on, level by level. There are several, since products have
    no order. This one takes the likeliest possible node each time and, among equal ones, the one whose parent was
    taken first."""
    taken = {(): 1.0}
    for _ in range(total):
        could = [(x * p[r], u + (r,)) for u, x in taken.items() if len(u) < depth
                 for r in [sum(v[:-1] == u for v in taken if v)] if r < len(p)]
        if not could:
            break
        x, v = max(could, key=lambda c: c[0])
        taken[v] = x
    assert abs(sum(taken.values()) - 1 - sequoia_value(p, total, depth)) < 1e-12
    return sorted(list(taken)[1:], key=lambda path: (len(path), path))


class Sequoia:
    def __init__(self, total, depth, accepts, measured, every):
        self.__dict__.update(locals())
        self.right, self.tried, self.n = [20 * a for a in accepts], [20.0] * len(accepts), 0
        self.shape = shape(tuple(accepts), total, depth)

    def grow(self, tree):
        node = {(): 0}
        for path in self.shape:
            u = node[path[:-1]]
            token, p = tree.candidates(u)[path[-1]]
            node[path] = tree.add(u, token, p)

    def observe(self, tree, accepted, bonus):
        if not self.measured:
            return
        for u in [0] + accepted:
            children = [v for v in range(1, len(tree.token)) if tree.parent[v] == u]
            for rank, v in enumerate(children[:len(self.tried)]):
                self.tried[rank] += 1
                self.right[rank] += v in accepted
        self.n += 1
        if self.n % self.every == 0:
            p = [r / t for r, t in zip(self.right, self.tried)]
            self.shape = shape(tuple(itertools.accumulate(p, min)), self.total, self.depth)


class Recycling:
    def __init__(self, k, total, depth, accepts):
        self.__dict__.update(locals())
        self.matrix, self.shape = {}, shape(tuple(accepts[:k]), total, depth)

    def grow(self, tree):
        node = {(): 0}
        for path in self.shape:
            u = node.get(path[:-1])
            row = self.matrix.get(tree.token[u], []) if u is not None else []
            if path[-1] < len(row):
                node[path] = tree.add(u, row[path[-1]])

    def observe(self, tree, accepted, bonus):
        for u in range(len(tree.token)):
            self.matrix[tree.token[u]] = tree.says(u)[:self.k]


class Caddtree:
    def __init__(self, top_k, depth, total, pause):
        self.__dict__.update(locals())

    @staticmethod
    def ms(model, rows):
        first, last = COSTS[model]
        return first + (last - first) * (rows - 1) / 256

    def search(self, tree, spent):
        order = tree.best(range(1, len(tree.token)))[:self.total]
        rates = [(1 + sum(tree.p[u] for u in order[:n])) / (spent + self.ms("target", n + 1)) for n in range(len(order) + 1)]
        return max(rates), rates.index(max(rates)), order

    def grow(self, tree):
        level, spent = [0], 0.0
        most, size, order = self.search(tree, 0.0)
        for _ in range(self.depth):
            ms = self.ms("draft", len(level))
            if sum(tree.p[u] for u in level) < most * ms:
                break
            spent += ms
            new = [tree.add(u, t, p) for u in level for t, p in tree.candidates(u)[:self.top_k]]
            rate, size, order = self.search(tree, spent)
            if rate < most:
                break
            most, level = rate, tree.best(new)[:self.top_k]
        tree.kept = sorted(order[:size])

    def observe(self, *_):
        pass


class Ddtree:
    """Adds the likeliest token that is not in the tree yet, wherever it is."""

    def __init__(self, total):
        self.total = total

    def grow(self, tree):
        for _ in range(self.total):
            new = [(tree.p[u] * p, u, t, p) for u in range(len(tree.token)) for t, p in tree.candidates(u) if tree.child(u, t) is None]
            _, u, t, p = max(new, key=lambda c: c[0])
            tree.add(u, t, p)

    def observe(self, *_):
        pass


class Talon:
    def __init__(self, total, top_k, mu, depth):
        self.__dict__.update(locals())

    def grow(self, tree):
        layer, left = [0], self.total
        for depth in range(self.depth):
            could = [(tree.p[u] * p, -i, -rank, u, t, p) for i, u in enumerate(layer) for rank, (t, p) in enumerate(tree.candidates(u))]
            could.sort(reverse=True)
            take = could[:self.top_k] if depth == 0 else [c for c in could if c[0] >= self.mu * could[0][0]]
            layer = [tree.add(u, t, p) for _, _, _, u, t, p in take[:left]]
            left -= len(layer)
            if not layer or left == 0:
                break

    def observe(self, *_):
        pass


class Adaptive:
    """SGLang 0.5.23, adaptive_spec_params.py."""
    def __init__(self, steps, start):
        self.__dict__.update(locals())
        self.now = start if start in steps else steps[len(steps) // 2]
        self.ema, self.count = float(self.now - 1), 0

    def grow(self, tree):
        u = 0
        for _ in range(self.now):
            u = tree.add(u, *tree.candidates(u)[0])

    def observe(self, tree, accepted, bonus):
        if self.now > 0:
            self.ema = 0.8 * self.ema + 0.2 * len(accepted)
        self.count += 1
        if self.count <= 10 or (self.count - 10) % 5:
            return
        i = old = self.steps.index(self.now)
        if self.now == 0:
            i = min(i + 1, len(self.steps) - 1)
            if self.steps[i] > 0 and self.ema < 0:
                self.ema = float(self.steps[i] - 1)
        else:
            while i > 0 and self.ema <= (0.5 if self.steps[i - 1] == 0 else self.steps[i - 1] - 0.5) - 0.25:
                i -= 1
            while i >= old and i < len(self.steps) - 1 and self.ema > self.steps[i] - 0.5:
                i += 1
        self.now = self.steps[i]


class Lookahead:
    def __init__(self, W, N, G):
        self.__dict__.update(locals())
        self.pool, self.window = {}, []

    def grow(self, tree):
        n = len(tree.text)
        while len(self.window) < self.W:
            i = len(self.window) + 1
            self.window.append(tree.text[i * 17 % n])
        for ngram in self.pool.get(tree.text[-1], []):
            u = 0
            for token in ngram:
                u = tree.add(u, token)
        self.chain, u = [0], 0
        for token in self.window:
            u = tree.add(u, token)
            self.chain.append(u)

    def observe(self, tree, accepted, bonus):
        for u in range(len(tree.token)):
            words = ([tree.token[0]] + tree.path(u))[-(self.N - 1):]
            if len(words) < self.N - 1:
                continue
            first, rest = words[0], words[1:] + [tree.says(u)[0]]
            pool = self.pool.setdefault(first, [])
            if rest in pool:
                pool.remove(rest)
            pool.append(rest)
            del pool[:-self.G]
        committed = len(accepted) + 1
        self.window = [tree.says(u)[0] for u in self.chain[committed:]]


class Suffix:
    """ArcticInference 0.3.0, suffix_tree.cc, with counting instead of the suffix tree."""
    def __init__(self, depth, factor, offset, min_p, chain):
        self.__dict__.update(locals())

    def speculate(self, text, m, most):
        def places(words):  # where they end, latest first
            return [e for e in range(len(text), len(words) - 1, -1) if text[e - len(words):e] == words]

        def followers(words):
            count = {}
            for e in places(words):
                if e < len(text):
                    count[text[e]] = count.get(text[e], 0) + 1
            return sorted(count.items(), key=lambda c: -c[1])  # among equal ones the one seen first, which is the latest

        out, open_, pushed = [], [(1.0, 0, tuple(text[-m:]), -1, None)], 0
        while len(out) < most and open_:
            item = min(open_, key=lambda x: (-x[0], x[1]))
            open_.remove(item)
            p, _, words, parent, token = item
            if token is not None:
                out.append((token, parent, p))
                parent = len(out) - 1
            for next_, n in followers(list(words)):
                q = p * n / len(places(list(words)))
                if q < self.min_p:
                    break
                pushed += 1
                open_.append((q, pushed, words + (next_,), parent, next_))
                if self.chain:
                    break
        return out

    def grow(self, tree):
        text, best, score = tree.text, [], 0.0
        for m in range(1, min(self.depth, len(text))):
            if sum(text[e - m:e] == text[-m:] for e in range(m, len(text) + 1)) == 1:
                break
            most = max(0, min(self.depth, int(m * self.factor + self.offset + 1e-6)))
            out = self.speculate(text, m, most)
            if sum(p for _, _, p in out) >= score:
                best, score = out, sum(p for _, _, p in out)
        node = []
        for token, parent, p in best:
            node.append(tree.add(0 if parent < 0 else node[parent], token))

    def observe(self, *_):
        pass


class Echo:
    def __init__(self, budget, depth, width, gates, stop, sure):
        self.__dict__.update(locals())

    def grow_all(self, trees):
        level, width = {b: [0] for b in range(len(trees))}, [self.width] * len(trees)
        for depth in range(1, self.depth + 1):
            for b in list(level):
                new = [trees[b].add(u, t, p) for u in level[b] for t, p in trees[b].candidates(u)[:width[b]]]
                level[b] = trees[b].best(new)[:width[b]]
            if depth in self.gates:
                p = {b: trees[b].p[level[b][0]] for b in level}
                level = {b: nodes for b, nodes in level.items() if p[b] >= self.stop}
                width = [0 if b not in level else 1 if p[b] >= self.sure else None for b in range(len(trees))]
                free, wide = sum(self.width - w for w in width if w is not None), width.count(None)
                width = [min(32, self.width + free // wide) if w is None else w for w in width]
            if not level:
                break
        every = sorted((-t.p[u], b, u) for b, t in enumerate(trees) for u in range(1, len(t.token)))[:self.budget * len(trees)]
        for b, t in enumerate(trees):
            t.kept = sorted(u for _, of, u in every if of == b)


def described(tree):
    shape = " ".join(f"{tree.parent[v]}>{tree.token[v]}" for v in range(1, len(tree.token)))
    kept = " ".join(str(v) for v in (range(1, len(tree.token)) if tree.kept is None else tree.kept))
    return {"tree": shape, "kept": kept} | ({"pauses": True} if tree.pauses else {})


def alone(pair, policy, prompt, iterations, tokens):
    text, out = list(prompt), []
    while len(out) < iterations and len(text) < len(prompt) + tokens:
        tree = Tree(text, pair, len(prompt) + tokens - len(text))
        policy.grow(tree)
        accepted, bonus = tree.accept()
        out.append(described(tree))
        policy.observe(tree, accepted, bonus)
        text += [tree.token[v] for v in accepted] + [bonus]
    return out


def main():
    pairs = {"sure": {"draft": table(1, 6, 5), "target": table(2, 4, 3)},
             "unsure": {"draft": table(1, 8, 1.5), "target": table(2, 4, 3)},
             "loop": {"draft": table(1, 6, 5), "target": table(2, 4, 3)}}
    for context, p in pairs["loop"]["target"].items():  # mostly a Markov chain, so that the text repeats itself
        if random.random() < 0.8:
            p.clear()
            p[str((3 * int(context.split()[-1]) + 1) % VOCAB)] = 0.75
    ranks = [0.5, 0.21, 0.13, 0.08, 0.047]
    cases = []

    def case(name, policy, params, iterations=12, length=6, tokens=700):
        for pair in pairs:
            prompt = [int(t) for t in random.integers(0, VOCAB, length)]
            cases.append({"policy": name, "pair": pair, "params": params, "prompt": prompt, "tokens": tokens,
                          "iterations": alone(pairs[pair], policy(**params), prompt, iterations, tokens)})

    for total, depth in [(1, 1), (12, 3), (25, 6)]:
        case("token_recycling", Recycling, {"k": 5, "total": total, "depth": depth, "accepts": ranks}, 20)
        case("sequoia", Sequoia, {"total": total, "depth": depth, "accepts": ranks, "measured": False, "every": 1})
    case("token_recycling", Recycling, {"k": 3, "total": 9, "depth": 4, "accepts": ranks}, 20)
    case("sequoia", Sequoia, {"total": 14, "depth": 4, "accepts": ranks, "measured": True, "every": 3}, 20)
    for params in [{"top_k": 4, "depth": 6, "total": 64}, {"top_k": 2, "depth": 3, "total": 5}, {"top_k": 8, "depth": 12, "total": 128}]:
        case("caddtree", Caddtree, params | {"pause": False})
    for total, top_k, mu, depth in [(20, 4, 0.1, 8), (7, 3, 0.5, 12), (60, 6, 0.05, 4), (5, 6, 1.0, 3)]:
        case("talon", Talon, {"total": total, "top_k": top_k, "mu": mu, "depth": depth})
    for steps, start in [([1, 3, 5, 7], 3), ([1, 3, 5, 7], 7), ([0, 1, 3], 1), ([2, 4], 9)]:
        case("adaptive", Adaptive, {"steps": steps, "start": start}, 45)
    for W, N, G in [(6, 3, 4), (4, 2, 2), (8, 4, 6)]:
        case("lookahead", Lookahead, {"W": W, "N": N, "G": G}, 25)
    for params in [{}, {"factor": 2.0, "offset": 1.0}, {"min_p": 0.4}, {"chain": True, "factor": 1.5}, {"depth": 4, "offset": 3.0}]:
        case("suffix", Suffix, {"depth": 24, "factor": 1.0, "offset": 0.0, "min_p": 0.1, "chain": False} | params, 30)
    for params in [{"budget": 6, "depth": 5, "width": 3, "gates": [1, 3], "stop": 0.1, "sure": 0.8},
                   {"budget": 10, "depth": 4, "width": 2, "gates": [1, 2, 3], "stop": 0.3, "sure": 0.5}]:
        for pair in pairs:
            prompts = [[int(t) for t in random.integers(0, VOCAB, 6)] for _ in range(4)]
            trees = [Tree(prompt, pairs[pair]) for prompt in prompts]
            Echo(**params).grow_all(trees)
            cases.append({"policy": "echo", "pair": pair, "params": params, "prompts": prompts,
                          "first": [described(t) for t in trees]})
    for _ in range(5):
        case("rate", Rate, {}, 16, tokens=1900)
    for length, tokens in [(300, 25), (600, 50), (900, 70)]:  # the text that must be read before the first guess
        case("rate", Rate, {}, 16, length, tokens)
    named = list(pairs)
    for pair in named:
        pairs["uneven " + pair] = pairs[pair] | {"costs": UNEVEN}
        prompt = [int(t) for t in random.integers(0, VOCAB, 9)]
        cases.append({"policy": "rate", "pair": "uneven " + pair, "params": {}, "prompt": prompt, "tokens": 900,
                      "iterations": alone(pairs[pair], Rate(UNEVEN), prompt, 40, 900)})
    for pair in named:  # the draft model is not used: it pauses where the text does not repeat itself
        pairs["expensive " + pair] = pairs[pair] | {"costs": EXPENSIVE}
        for length, tokens in [(6, 700), (500, 300)]:
            prompt = [int(t) for t in random.integers(0, VOCAB, length)]
            cases.append({"policy": "rate", "pair": "expensive " + pair, "params": {}, "prompt": prompt, "tokens": tokens,
                          "iterations": alone(pairs[pair], Rate(EXPENSIVE), prompt, 60, tokens)})
    for total in 1, 5, 10:
        case("ddtree", Ddtree, {"total": total})
    out = {"vocab": VOCAB, "costs": COSTS, "pairs": pairs, "cases": cases}
    path = pathlib.Path(__file__).parent / "policies.json"
    path.write_text(json.dumps(out, separators=(",", ":")).replace('{"policy"', '\n{"policy"') + "\n")
    print(f"{len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
