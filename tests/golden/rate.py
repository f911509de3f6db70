"""rate for make_policies.py: the formula of policies/rate.lua and its parts, with the learning of
runtime/tree/calibration_learn.c, at temperature 0, implemented again as simply as possible."""
import math
import numpy as np

COSTS = {"rows": [1, 257], "target": [1.0, 9.0], "draft": [0.125, 1.125], "cache_miss": [0.0005, 0.003, 0.02]}
# a draft pass costs more than a token is worth, a row half of that
EXPENSIVE = COSTS | {"target": [1.0, 131.7], "draft": [2.0, 3.0], "cache_miss": [0.011, 0.053, 0.31]}
# a second row is almost free, a third expensive, and a fourth cheap
UNEVEN = {"rows": [1, 2, 3, 4, 257], "target": [1.0, 1.013, 1.371, 1.427, 11.3], "draft": [0.121, 0.127, 0.183, 0.197, 1.317],
          "cache_miss": [0.0007, 0.0031, 0.019]}


class Calibration:
    """Calibrates the draft model's candidates, and learns slope, shift and share from the tokens that follow."""

    def __init__(self):
        self.slope, self.shift, self.share = 1.0, 0.0, 1.0
        self.slopes, self.shifts, self.came, self.shares = 20.0, 4.0, 1.0, 1.0

    def calibrate(self, candidates):
        p = np.array([x for _, x in candidates])
        weight = (p / p[0]) ** (1 / 0.6)
        others = weight[1:].sum()
        odds = min(max(math.exp(self.shift - self.slope * math.log(others)), self.share * weight[1] / others), 1e12)
        first = odds / (1 + odds)
        return [(t, first if i == 0 else self.share * (1 - first) * w / others)
                for i, ((t, _), w) in enumerate(zip(candidates, weight))]

    def learn(self, candidates, token, slope, shift, share):
        """slope, shift, share: the numbers with which the candidates were calibrated."""
        tokens, p = [t for t, _ in candidates], [x for _, x in candidates]
        i, first = tokens.index(token), min(max(p[0], 1e-6), 1 - 1e-6)
        odds = (math.log(first / (1 - first)) - shift) / slope
        wrong, known = (i == 0) - first, first * (1 - first)
        self.slopes, self.shifts = self.slopes + known * odds ** 2, self.shifts + known
        self.slope = min(max(self.slope + wrong * odds / self.slopes, 0.1), 3)
        self.shift = min(max(self.shift + wrong / self.shifts, -6), 6)
        left = (1 - p[0]) * share
        if i > 0 and left > 0:
            for j in range(1, 8):
                self.shares += (p[j] / left) ** 2
                self.came += p[j] / left if j == i else 0
            self.share = min(max(self.came / self.shares, 0.05), 1)


class LossBudget:
    """How much drafts may lose, in target passes. The pair's budget begins with 10. It gains 1 % of each token, and the
    policy overhead (a quarter of a cache miss) that a paused iteration avoids and plain decoding would take. It
    holds at most 32. A text may lose 5 % of its tokens, or of 200 if it has fewer."""

    def __init__(self, misses):
        self.misses = misses
        self.credit, self.loss = 10.0, 0.01
        self.balance, self.tokens, self.pause_left, self.cold = 0.0, 0, 0, True

    def left(self):
        return min(self.credit, self.balance + 0.05 * max(self.tokens, 200))

    def adds(self, passes):
        self.credit = min(self.credit + passes, 32)

    def begins(self, n):
        """Counts n iterations, each with a token of its own."""
        self.tokens += n
        self.adds(self.loss * n)

    def budget(self, plain, overhead, row):
        """Returns the milliseconds that this iteration may lose; None: not even overhead and a row, so it pauses."""
        look, self.loss = overhead + row, 0.01 + 0.25 * self.misses[1] / plain
        resume = max(1.25 * self.misses[2] - overhead, 0.0) / plain
        if self.cold:
            self.balance, self.cold = self.balance - resume, False
            self.adds(-resume)
        self.look, self.again = look / plain, look / plain + resume
        return self.left() * plain if self.covers(self.look) else None

    def covers(self, passes):
        """Whether this many may be lost. If not, it pauses until a look after the pause may be."""
        if passes > self.left():
            self.pause_left = math.ceil(max((self.again - self.credit) / self.loss, (self.again - self.balance) / 0.05 - self.tokens)) - 1
        return passes <= self.left()

    def stake(self, left, row, p):
        """Returns the share p of what is left, at most half, or a row."""
        return min(left, max(row, min(p, 0.5) * left))

    def spend(self, ms, plain, accepted):
        gain = accepted - (ms / plain - 1)
        self.tokens, self.balance = self.tokens + accepted, self.balance + gain
        self.adds(gain + self.loss * accepted)


class Copies:
    """Tokens that followed earlier occurrences of the text's last tokens. right[kind] / seen[kind] is how often those
    of a kind came true."""

    def __init__(self):
        self.right, self.seen, self.first = {}, {}, None
        for equal in range(1, 17):
            q = equal / (equal + 2)
            for kind, x in [("alone", q), ("agrees", (1 + q) / 2), ("differs", q / 2)]:
                self.right[kind, equal], self.seen[kind, equal] = 2 * x, 2.0

    def q(self, kind):
        return self.right[kind] / self.seen[kind]

    def find(self, text):
        def equal(place):
            n = 0
            while n < 16 and n <= place and text[place - n] == text[-1 - n]:
                n += 1
            return n
        place = max(range(len(text) - 1), key=lambda i: (equal(i), i))
        self.equal = equal(place)
        if self.first:  # it was not verified: (place, token, kind)
            self.learn(self.first[2], text[self.first[0]] == self.first[1])
        self.text, self.place, self.first, self.length = list(text), place if self.equal >= 1 else None, None, len(text)
        self.nodes = []  # (node, kind) of this iteration's copies

    def offer(self):
        """Returns the token that is copied next, and its place among copies. What it copies may be copies."""
        if self.place is None:
            return None, None
        self.place += 1
        self.text.append(self.text[self.place])
        if not self.nodes:
            self.first = self.length, self.text[-1], ("alone", self.equal)
        return self.text[-1], min(self.equal + len(self.nodes), 16)

    def learn(self, kind, right):
        self.seen[kind] += 1
        self.right[kind] += right

    def observe(self, tree, accepted):
        for v, kind in self.nodes:
            if v in tree.kept and tree.parent[v] in [0] + accepted:
                self.learn(kind, v in accepted)
                if v == self.nodes[0][0]:
                    self.first = None


def between(n, rows, ms):
    """Returns the cost of n rows by linear interpolation; beyond the last entry of the table the last line continues."""
    i = min(max(sum(r <= n for r in rows) - 1, 0), len(rows) - 2)
    return ms[i] + (n - rows[i]) * (ms[i + 1] - ms[i]) / (rows[i + 1] - rows[i])


class Rate:
    def __init__(self, costs=COSTS):
        again, after, _ = costs["cache_miss"]
        overhead, step, node = 2 * after, 0.85 * after, 4 * again
        self.verify = lambda n: between(n, costs["rows"], costs["target"]) + overhead + (n - 1) * node
        self.reading = lambda n: between(n, costs["rows"], costs["draft"]) if n > 0 else 0.0
        self.pass_ms = lambda n: self.reading(n) + step
        self.rows = lambda nodes, n: self.verify(nodes + 1 + n) - self.verify(nodes + 1)  # the cost of n more rows
        self.row = lambda nodes: min(self.rows(nodes, n) / n for n in range(1, 5))
        self.overhead, self.node = overhead, node
        self.loss_budget, self.copies, self.calibration = LossBudget(costs["cache_miss"]), Copies(), Calibration()
        plain, sums = self.verify(1) - overhead, [sum(0.8 ** i for i in range(1, depth + 1)) for depth in range(9)]
        self.promise = max(sums[depth] - (self.rows(0, depth) + max(depth - 1, 0) * self.pass_ms(1)) / plain for depth in range(9))
        self.expected = max(0.0, 0.8 - self.row(1) / plain)
        self.brings, self.asked, self.idle, self.pause, self.reach = [self.promise, self.expected], [3, 3], 0, 4, 0.0
        self.tokens, self.ms = 3.0, self.verify(1)
        self.read = 0  # how many tokens of the text the draft model has rows of
        self.quiet, self.needs = 0, 16  # iterations to pause, unless this many of the last tokens occur earlier
        self.paused, self.valid_until = 0, 0  # paused iterations; length up to which costs are valid

    def repays(self, R, gain, length, left):
        """Whether the gain of passes until the text ends pays for reading everything before the text's last token."""
        return gain * left / (R * self.verify(1)) >= R * self.reading(length - 1 - self.read)

    def pays(self, R, rest, tries, length, left):
        """Whether a first pass pays for its time."""
        gain = max(self.brings[0], self.promise if tries else 0.0) * rest - R * self.pass_ms(1)
        return gain >= 0 and self.repays(R, gain, length, left)

    def silence(self, length, left):
        """How many coming iterations do not draft, even if only plain decoding's rate is reached, unless there is a
        copy that pays for its row then."""
        R, tries = 1 / (self.verify(1) - self.overhead), self.idle >= self.pause
        self.needs = next((e for e in range(1, 17) if self.copies.q(("alone", e)) >= R * self.row(0)), 16)
        if self.passes or self.pays(R, 1.0, tries, length, left):
            return 0
        most = self.valid_until + 1 - length
        return most if tries or not self.pays(R, 1.0, True, length, left) else min(most, self.pause - self.idle)

    def pauses(self, text):
        """Pauses as the loss budget requires, or until enough of the text's last tokens for a copy occur earlier."""
        n = self.needs
        again = any(text[i:i + n] == text[-n:] for i in range(len(text) - n))
        if self.loss_budget.pause_left > 0:
            self.loss_budget.pause_left -= 1
        elif self.quiet > 0 and not again:
            self.quiet -= 1
        else:
            self.quiet = 0
            return False
        self.paused += 1
        return True

    def resume(self, text):
        """Counts the paused iterations as plain ones."""
        self.loss_budget.begins(1 + self.paused)
        self.loss_budget.cold = self.loss_budget.cold or self.paused > 0
        for _ in range(self.paused):
            self.tokens, self.ms = 0.98 * self.tokens + 1, 0.98 * self.ms + self.verify(1) - self.overhead
        self.idle, self.paused = self.idle + self.paused, 0
        if len(text) > self.valid_until:
            self.valid_until = math.ceil(len(text) / 128) * 128

    def is_worth(self, R, rest, n, depth, budget, tree):
        ms = self.pass_ms(n)
        if self.drafted_ms + ms + self.rows(0, 1) > budget:
            return False
        if self.passes:
            return depth < 2 + self.reach and self.brings[1] * rest >= R * ms
        return self.pays(R, rest, self.idle >= self.pause, len(tree.text), tree.left)

    def grow(self, tree):
        self.spent, self.passes, self.drafted_ms, tree.kept = None, [], 0.0, []
        tree.pauses = self.pauses(tree.text)
        if tree.pauses:
            return
        self.resume(tree.text)
        budget = self.loss_budget.budget(self.verify(1) - self.overhead, self.overhead, self.rows(0, 1))
        if budget is None:
            return
        R, budget = max(self.tokens / self.ms, 1 / (self.verify(1) - self.overhead)), budget - self.overhead
        self.says, alpha, of_pass, level, open_, depth = {}, {0: 1.0}, {}, [0], 1.0, 0
        self.copies.find(tree.text)
        stake = self.loss_budget.stake(budget, self.rows(0, 1), 1)
        while depth < tree.left - 1:
            tip = level[-1]
            token, equal = self.copies.offer()
            rest = open_ - alpha[tip] * self.copies.q(("alone", equal)) if token is not None else open_
            drafts = self.is_worth(R, rest, len(level), depth, budget, tree)
            if not drafts and token is None:
                break
            if drafts:
                if not self.passes:
                    self.said = self.calibration.slope, self.calibration.shift, self.calibration.share
                    self.read = len(tree.text)
                for u in level:
                    self.says[u] = self.calibration.calibrate(tree.candidates(u))
                ms = self.pass_ms(len(level))
                self.drafted_ms += ms
                self.passes.append({"open": rest, "net": 0.0, "ms": ms})
            below, copy, left = [], None, 1.0
            if token is not None:
                kind = "alone", equal
                if drafts:
                    rank = [t for t, _ in self.says[tip]].index(token)
                    kind = "differs" if rank else "agrees", equal
                    if not self.copies.nodes:
                        self.copies.first = len(tree.text), token, kind
                    left = min(1.0, (1 - self.copies.q(kind)) / (1 - self.says[tip][rank][1]))
                q = self.copies.q(kind)
                if alpha[tip] * q >= R * self.row(len(alpha) - 1) and self.rows(0, len(alpha)) <= stake:
                    copy = tree.add(tip, token, q)
                    self.copies.nodes.append((copy, kind))
                    alpha[copy] = alpha[tip] * q
            if copy is None:
                self.copies.place = None
            for i, u in enumerate(level if drafts else []):
                shared = token is not None and i == len(level) - 1
                for t, p in self.says[u][:6]:
                    if shared and t == token:
                        continue
                    value = alpha[u] * (left if shared else 1) * p
                    if len(tree.token) > 64 or value < R * self.row(len(alpha) - 1) or self.rows(0, len(alpha)) > stake:
                        break
                    v = tree.add(u, t, value / alpha[u])
                    alpha[v], of_pass[v] = value, len(self.passes) - 1
                    if value >= R * (self.pass_ms(2) - self.pass_ms(1)) / max(self.brings[1], 0.01):
                        below.append(v)
            level = below + ([copy] if copy is not None else [])
            open_, depth = sum(alpha[v] for v in level), depth + 1
            if not level or len(tree.token) > 64:
                break
        self.choose(tree, alpha, of_pass, R, budget - self.drafted_ms)

    def choose(self, tree, alpha, of_pass, R, left):
        """Verifies the likeliest nodes, in the number that adds most tokens, minus R for each ms of their rows."""
        order, most, k, total = sorted(list(alpha)[1:], key=lambda v: (-alpha[v], v)), 0.0, 0, 0.0
        stake = self.loss_budget.stake(left, self.rows(0, 1), alpha[order[0]] if order else 0)
        for i, v in enumerate(order, 1):
            total, ms = total + alpha[v], self.rows(0, i)
            if ms <= stake and total - R * ms > most:
                most, k = total - R * ms, i
        tree.kept = sorted(order[:k])
        self.spent = self.drafted_ms + self.verify(k + 1) + (len(order) - k) * self.node
        self.settle(alpha, of_pass, R, order[:k])

    def learn(self, which, brought):
        self.asked[which] += 1
        self.brings[which] += (0.01 + 1 / self.asked[which]) * (brought - self.brings[which])

    def settle(self, alpha, of_pass, R, kept):
        """Learns what passes have gained: the tokens of their nodes minus the cost of rows and, for the first pass, the
        gain of those below minus their time. kept: likeliest first. What is known of passes below the first fades
        while there are none."""
        if not self.passes:
            self.idle += 1
            return
        for i, v in enumerate(kept):
            if v in of_pass:
                self.passes[of_pass[v]]["net"] += alpha[v] - R * self.rows(i, 1)
        first, *others = self.passes
        if not others:
            self.brings[1] += 0.01 * (self.expected - self.brings[1])
        for one in others:
            self.learn(1, one["net"] / one["open"])
        self.learn(0, (first["net"] + sum(one["net"] - R * one["ms"] for one in others)) / first["open"])
        self.idle = 0
        self.pause = min(2 * self.pause, 64) if self.brings[0] < R * first["ms"] else 4

    def observe(self, tree, accepted, bonus):
        if self.spent is None:
            return
        for v in accepted if self.passes else []:  # accepted nodes that were drafted from have rows, up to the first one that was not
            if v not in self.says:
                break
            self.read += 1
        self.tokens, self.ms = 0.98 * self.tokens + len(accepted) + 1, 0.98 * self.ms + self.spent
        self.loss_budget.spend(self.spent, self.verify(1) - self.overhead, len(accepted))
        if self.loss_budget.pause_left == 0 and len(tree.token) == 1:
            quiet = self.silence(len(tree.text) + len(accepted) + 1, tree.left - len(accepted) - 1)
            self.quiet = quiet if quiet > 0 and self.loss_budget.covers(self.loss_budget.again) else 0
        self.copies.observe(tree, accepted)
        self.reach = max(0.9 * self.reach, len(accepted))
        for u, token in zip([0] + accepted, [tree.token[v] for v in accepted] + [bonus]):
            if u in self.says:
                self.calibration.learn(self.says[u], token, *self.said)
