"""Hostile policies, several at once: none reads another request's text, prompt or memory, the corpus, or what an earlier policy left.

hostile.py URL; Python's own modules only. A policy leaves marks wherever it can write, looks for those of others wherever it can read, and ends with an error
that begins with LEAK when it finds one. Controls: a policy that looks for its own marks finds them, and so do later texts of one request in its memory and
corpus. Status 1: a leak, a control that found nothing, or another text.
"""

import http.client
import itertools
import json
import re
import sys
import threading
import urllib.parse

URL = urllib.parse.urlparse(sys.argv[1])
PROMPT = "It was a dark night, and"
CLIENTS, TURNS = 6, 6
numbers = itertools.count(1)

SOURCE = r"""
local MARK, CONTROL = "MARK%d", "%s"
local error, type, require, pcall, rawset, next, tostring, getmetatable = error, type, require, pcall, rawset, next, tostring, getmetatable
local policy = require "dt.policy"
local Hostile = policy.define { name = "hostile", doc = "reads what it can", uses = { draft = false, memory = true, corpus = true } }
local own, names = CONTROL == "mark" and "" or MARK, 0

local function check(value, where)
  if type(value) == "string" and value:sub(1, 4) == "MARK" and value ~= own then error("LEAK: " .. value .. " in " .. where, 0) end
end
-- All keys, values and metatables behind a value.
local function walk(value, where, seen)
  check(value, where)
  if type(value) == "table" and not seen[value] then
    seen[value] = true
    for k, v in next, value do
      names = names + 1
      check(k, where)
      walk(v, where .. "." .. tostring(k):sub(1, 20), seen)
    end
  end
  if type(getmetatable(value)) == "table" then walk(getmetatable(value), where .. "'s metatable", seen) end
end
local function look(object, tree)
  local seen = {}
  for where, value in next, { _G = _G, module = policy, own = Hostile, object = object or "", text = "", tree = tree or "", seq = tree and tree.seq or "" } do
    walk(value, where, seen)
  end
end
local function leave()
  for _, t in next, { _G, string, table, math, utf8, policy, Hostile } do pcall(rawset, t, MARK, MARK) end
  for _, name in next, { "pairs", "type", "error", "require", "print" } do rawset(_G, name, nil) end
  rawset(string, "format", function() return MARK end)
  rawset(policy, "define", function() return MARK end)
  for _, t in next, { _G, string, "" } do pcall(setmetatable, t, { __index = function() return MARK end }) end
  pcall(function() getmetatable("").__index.upper = function() return MARK end end)
end

look()
if CONTROL == "names" then error("NAMES " .. names, 0) end
for _, name in next, { "os", "io", "debug", "package", "dt", "dt.json", "linear", "rate", "policies/linear", "../policies/linear", "/etc/passwd", "policy" } do
  if pcall(require, name) then error("LEAK: require " .. name, 0) end
end
for _, name in next, { "io", "os", "debug", "package", "load", "loadfile", "dofile", "loadstring", "collectgarbage", "coroutine" } do
  if rawget(_G, name) ~= nil then error("LEAK: " .. name, 0) end
end
leave()

function Hostile:init()
  if CONTROL == "none" or CONTROL == "memory" then
    local kept = self.memory:get("MARK")
    if kept then error("LEAK: " .. kept .. " in the memory", 0) end
  end
  if CONTROL ~= "none" then self.memory:set("MARK", MARK) end
  for _, object in next, { self.corpus, self.memory, self } do
    if pcall(self.memory.set, self.memory, "object", object) then error("LEAK: an object is kept", 0) end
  end
end
-- Tokens that are not of this text.
local function look_outside(corpus, tree, seq)
  local n = seq:length()
  for _, i in next, { 0, -1, n + 1, n + 2, n + 1000, -n, 1 << 20, 1 << 31, 1 << 40, math.maxinteger, math.mininteger } do
    local fine, token = pcall(seq.token, seq, i)
    if fine and token then error("LEAK: token " .. i .. " of a text of " .. n, 0) end
    fine, token = pcall(tree.token, tree, i)
    if fine and token and i ~= 0 then error("LEAK: node " .. i .. " of an empty tree", 0) end
  end
  for shift = 16, 56 do
    for part = 1, 9 do
      local fine, token = pcall(corpus.token, corpus, seq, part << shift)
      if fine and token then error("LEAK: place " .. (part << shift) .. " of an empty corpus", 0) end
    end
  end
end
function Hostile:draft(tree)
  local seq = tree.seq
  look(self, tree)
  if CONTROL == "none" or CONTROL == "corpus" then
    if self.corpus:longest(seq, "rest") > 0 then error("LEAK: the corpus has the end of this text", 0) end
  end
  if CONTROL == "none" then
    look_outside(self.corpus, tree, seq)
    self.memory:set(MARK, MARK)
  end
  tree:add(tree.root, 5)
end
return Hostile
"""
ENDLESS = 'local P = require("dt.policy").define { name = "p", doc = "d", uses = { draft = false } } function P:%s() while true do end end return P'


def ask(body, prompt=PROMPT):
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=300)
    c.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": 16, **body}))
    answer = json.load(c.getresponse())
    c.close()
    return answer


def text_of(answer):
    """Its text, or its error without the line."""
    return answer["choices"][0]["text"] if "choices" in answer else re.sub(r"^policy\.lua:\d+: ", "", answer["error"]["message"])


def hostile(control="none", prompt=PROMPT):
    return ask({"dtrun": {"source": SOURCE % (next(numbers), control)}}, prompt)


def want(fine, *said):
    if not fine:
        sys.exit(" ".join(str(part) for part in said))


def names():
    return text_of(hostile("names"))


plain = text_of(ask({"dtrun": {"policy": "ar"}}))
sampled = {"temperature": 1.2, "seed": 5, "dtrun": {"policy": "suffix"}}
secret = text_of(ask(sampled))
before = names()
want(before.startswith("NAMES ") and int(before.split()[1]) > 50, before)
want(text_of(hostile("mark")).startswith("LEAK: MARK"), "a policy does not find its own marks")
for control, found in (("memory", "in the memory"), ("corpus", "the corpus has")):
    said = text_of(hostile(control, [PROMPT] * 20))
    want(found in said, "a later text of the same request does not find it:", control, said)

wrong = []


def client(i):
    for turn in range(TURNS):
        kind = (i + turn) % 3
        if kind == 0 and text_of(ask(sampled)) != secret:
            wrong.append("another text next to hostile policies")
        said = plain if kind == 0 else text_of(hostile()) if kind == 1 else text_of(ask({"dtrun": {"source": ENDLESS % ("init" if turn % 2 else "draft")}}))
        if (kind == 1 and said != plain) or (kind == 2 and "ran longer than 0.02 s" not in said):
            wrong.append(said)


threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
want(not wrong, wrong[:3])
want(names() == before, "a policy left something:", before, names())

# The guesses in a trace do not come from another request's text.
shared = ask({"dtrun": {"policy": "suffix"}})["choices"][0]["dtrun"]
want(shared["corpus"]["earlier"] > 0, "the server remembers nothing")
traced = ask({"dtrun": {"policy": "suffix", "trace": True}})["choices"][0]["dtrun"]
want(traced["corpus"]["earlier"] == 0, "a trace shows guesses from other texts:", traced["corpus"])
print(f"{CLIENTS * TURNS} requests next to hostile policies; {before.lower()}")
