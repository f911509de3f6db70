-- What a policy finds of its earlier runs: uses = { memory = true }, a table that outlives them, and uses = { corpus =
-- true }, where the end of the text stands in the text, in earlier outputs and in files.
local lu = require "luaunit"
local dt = require "dt"

local HEAD = [[
local policy = require "dt.policy"
local function raises(text, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error, instead of: " .. text, 2) end
  if message:sub(-#text) ~= text then error("expected: " .. text .. ", got: " .. message, 2) end
end
]]

local function pair_of(corpus) return assert(dt.fake { vocab = 12, context = 2000, corpus = corpus }) end

local function run(pair, source, how)
  local request = { policy = "test.lua", source = HEAD .. source .. "\nreturn P", prompt = " 1", tokens = 3 }
  for key, value in pairs(how or {}) do request[key] = value end
  local result, failure = pair:generate(request)
  lu.assertNil(failure and failure.message)
  return result
end

-- ---- memory --------------------------------------------------------------------------------------------------------

TestMemory = {}

local REMEMBERS = "local P = policy.define { name = 'test', uses = { memory = true } }\n"

-- Runs init's text with the memory in m.
local function remembering(pair, text, how)
  return run(pair, REMEMBERS .. "function P:init(seq) local m = self.memory " .. text .. " end", how)
end

function TestMemory.test_a_later_run_finds_what_an_earlier_one_left()
  local pair <close> = pair_of()
  local source = "local n = m:get('runs') or 0 if n ~= seq:token(1) then error(n) end m:set('runs', n + 1) m:set(n, n)"
  for i = 0, 3 do
    local result = remembering(pair, source, { prompt = " " .. i })
    lu.assertEquals(result.memory, i == 0 and 0 or i + 1) -- as many entries as there were
    lu.assertNil(result.corpus)
  end
  pair:forget()
  lu.assertEquals(remembering(pair, source, { prompt = " 0" }).memory, 0)
end

local function read(name)
  local file <close> = assert(io.open((arg[0]:match "^(.*/)" or "./") .. "../data/twins/" .. name, "rb"))
  return file:read "a"
end

-- Two texts with one FNV-1a 64.
function TestMemory.test_a_twin_finds_nothing_of_its_twins()
  local pair <close> = pair_of()
  local function of(source) return pair:generate { policy = "p.lua", source = source, prompt = " 1", tokens = 3 } end
  lu.assertEquals(assert(of(read "keeper.lua")).memory, 0)
  lu.assertEquals(assert(of(read "keeper.lua")).memory, 1)
  local _, failure = of(read "thief.lua")
  lu.assertStrContains(failure.message, "found: nil")
end

function TestMemory.test_a_policy_without_memory_says_so()
  local pair <close> = pair_of()
  local result = run(pair, "local P = policy.define { name = 'test' } function P:init() assert(self.memory == nil) end")
  lu.assertNil(result.memory)
end

function TestMemory.test_plain_data_comes_back_as_it_was()
  local pair <close> = pair_of()
  remembering(pair, [[
    for _, value in ipairs { 0, -1, math.maxinteger, math.mininteger, 0.5, 2.0, -1e300, math.huge, true, false, "",
                             "a\0b", ("x"):rep(65536) } do
      for _, key in ipairs { 1, -7, "", "k", "1" } do
        assert(m:set(key, value))
        local got = m:get(key)
        assert(got == value and math.type(got) == math.type(value))
      end
    end
    m:set("list", { 1, 2.5, -3 })
    local list = m:get "list"
    assert(#list == 3 and list[1] == 1 and list[2] == 2.5 and list[3] == -3 and math.type(list[1]) == "integer")
    list[1] = 9
    assert(m:get "list"[1] == 1, "it is a copy")
    m:set("list", {})
    assert(#m:get "list" == 0)
    m:set(2.0, "two")
    assert(m:get(2) == "two")
    m:set(2, nil)
    assert(m:get(2) == nil and m:get "never" == nil)]])
end

function TestMemory.test_nothing_but_plain_data_is_kept()
  local pair <close> = pair_of()
  remembering(pair, [[
    local function value_fails(text, value) raises("memory:set: " .. text, m.set, m, 1, value) end
    value_fails("a value is a number, a string, a boolean, a list of numbers or nil, not a function", print)
    value_fails("a value is a number, a string, a boolean, a list of numbers or nil, not a userdata", seq)
    value_fails("value: item 2 is a string, not a number", { 1, "2" })
    value_fails("value: item 1 is a table, not a number", { {} })
    value_fails("value: the table is not a list of numbers", { 1, x = 2 })
    value_fails("value: the table has a metatable", setmetatable({ 1 }, {}))
    local list = {}
    for i = 1, 256 do list[i] = i end
    assert(m:set(1, list) and #m:get(1) == 256)
    list[257] = 1
    value_fails("value: the list has more than 256 numbers", list)
    raises("memory:set: a key is an integer or a string, not a fraction", m.set, m, 1.5, 1)
    raises("memory:get: a key is an integer or a string, not boolean", m.get, m, true)
    raises("memory:get: a key is an integer or a string, not nil", m.get, m, nil)
    raises("memory:get: not called as a method of a memory", m.get, seq, 1)
    raises("memory:room: not called as a method of a memory", m.room, {})
    raises("a memory has no 'gett': did you mean 'get'?", function() return m.gett end)
    assert(not getmetatable(m) and not pcall(setmetatable, m, {}))]])
end

-- 64 MB, of which an entry takes 64 bytes, its key (9 bytes, or a byte and the string) and its value (the same).
function TestMemory.test_it_has_64_mb()
  local pair <close> = pair_of()
  remembering(pair, [[
    assert(m:room() == 64 * 1024 * 1024)
    local function cost(length) return 64 + 9 + 1 + length end
    local long, n = ("x"):rep(65000), 0
    while m:room() >= cost(65000) do
      n = n + 1
      local before = m:room()
      assert(m:set(n, long) and m:room() == before - cost(65000))
    end
    local left = m:room() - cost(0)
    assert(not m:set("k", ("y"):rep(left + 1 + 8)), "one too many") -- a key of a byte is 2, not 9
    assert(m:get "k" == nil and m:room() == left + cost(0))
    assert(not m:set(0, ("y"):rep(left + 1)) and m:set(0, ("y"):rep(left)))
    assert(m:room() == 0 and not m:set("z", true) and not m:set(-1, 1))
    assert(not m:set(1, long .. "x") and m:get(1) == long, "what is there stays")
    assert(m:set(1, "short") and m:room() == 65000 - 5)
    m:set(2, nil)
    assert(m:room() == 65000 - 5 + cost(65000) and m:get(3) == long)]])
end

-- The four policies that ran last with a pair are remembered.
function TestMemory.test_four_policies_are_remembered()
  local pair <close> = pair_of()
  local function counts(name)
    return remembering(pair, ("m:set(m:room(), 1) -- %s"):format(name) .. "\n").memory
  end
  local function names(text)
    local list = {}
    for name in text:gmatch "%a" do list[#list + 1] = counts(name) end
    return table.concat(list, " ")
  end
  lu.assertEquals(names "abcd", "0 0 0 0")
  lu.assertEquals(names "abcd", "1 1 1 1")
  lu.assertEquals(names "bacd", "2 2 2 2")
  lu.assertEquals(names "eacd", "0 3 3 3") -- b ran longest ago
  lu.assertEquals(names "b", "0")
end

function TestMemory.test_the_sequences_of_a_batch_share_it()
  local pair <close> = pair_of()
  local results, failures = pair:generate_batch {
    policy = "test.lua", prompts = { " 1", " 2", " 3", " 4" }, slots = 2, tokens = 3, source = HEAD .. REMEMBERS .. [[
      function P:init(seq)
        local m = self.memory
        m:set(seq:token(1), true)
        if seq:token(1) == 4 then for i = 1, 4 do assert(m:get(i)) end end
      end
      return P]],
  }
  lu.assertEquals(failures, {})
  local found = {}
  for i, result in ipairs(results) do found[i] = result.memory end
  lu.assertEquals(found, { 0, 1, 2, 3 })
end

function TestMemory.test_its_name_is_no_parameters()
  local pair <close> = pair_of()
  for _, name in ipairs { "memory", "corpus" } do
    local _, failure = pair:generate { policy = "x", prompt = " 1", source = HEAD
      .. ("return policy.define { name = 'x', params = { { '%s', 1 } } }"):format(name) }
    lu.assertStrContains(failure.message, "policy.define: x: a parameter cannot be named " .. name)
  end
end

-- ---- corpus --------------------------------------------------------------------------------------------------------

TestCorpus = {}

local function file_of(tokens)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  for _, token in ipairs(tokens) do file:write(" ", token) end
  assert(file:close())
  return path
end

local function with_files(lists, f)
  local paths = {}
  for i, list in ipairs(lists) do paths[i] = file_of(list) end
  local pair <close> = pair_of(paths)
  for _, path in ipairs(paths) do os.remove(path) end
  f(pair)
end

local function numbers(n, most)
  local list = {}
  for i = 1, n do list[i] = math.random(0, most) end
  return list
end

local function literal(lists)
  local texts = {}
  for i, list in ipairs(lists) do texts[i] = "{" .. table.concat(list, ",") .. "}" end
  return "{" .. table.concat(texts, ",") .. "}"
end

-- Looks everywhere, in the files and in the outputs that its memory keeps of earlier runs, and compares.
local LOOKS = [[
local files = %s
local P = policy.define { name = "looks", uses = { draft = false, memory = true, corpus = true } }

local function common(text, place, seq, most)
  local n, length = 0, seq:length()
  while n < most and n < place and n < length and text[place - n] == seq:token(length - n) do n = n + 1 end
  return n
end

function P:texts(seq)
  local texts = table.pack(table.unpack(files))
  for i = 1, self.memory:get "runs" - 1 do texts[#texts + 1] = self.memory:get(i) end
  local own = {}
  for i = 1, seq:length() do own[i] = seq:token(i) end
  return { text = { own }, rest = texts }
end

function P:init(seq)
  self.run, self.begun = (self.memory:get "runs" or 0) + 1, seq:length()
  self.memory:set("runs", self.run)
end

-- The longest m, and for each m the ends of all its places: m tokens before, the token there, and what follows.
local function look(texts, seq, most, itself)
  local longest, places = 0, {}
  for _, text in ipairs(texts) do
    for place = 1, #text do
      local n = common(text, place, seq, most)
      if n > longest and not (itself and place == #text) then longest = n end
      for m = 1, n do
        places[m] = places[m] or {}
        places[m][#places[m] + 1] = ("%%s,%%s"):format(text[place + 1], text[place + 2])
      end
    end
  end
  return longest, places
end

function P:draft(tree)
  local seq, corpus = tree.seq, self.corpus
  local texts = self:texts(seq)
  for where, list in pairs(texts) do
    local longest, places = look(list, seq, 9, where == "text")
    local told = corpus:longest(seq, where, 9)
    if told ~= longest then error(("%%s: longest %%d, told %%d"):format(where, longest, told)) end
    if where == "text" then
      local at, equal = seq:match(9)
      assert((equal or 0) == longest)
      for place = 1, seq:length() - 1 do
        local n = common(list[1], place, seq, 9)
        if n == longest and n > 0 then assert(place <= at) end
        if place == at then assert(n == longest) end
      end
    end
    for m = 1, 9 do
      local there, n = corpus:places(seq, where, m, 1024)
      if n ~= #(places[m] or {}) or #there ~= n then error(("%%s, %%d: %%d places"):format(where, m, n)) end
      local seen = {}
      for i, place in ipairs(there) do
        for d = 0, m - 1 do assert(corpus:token(seq, place - d) == seq:token(seq:length() - d)) end
        local next = corpus:token(seq, place + 1)
        seen[i] = ("%%s,%%s"):format(next, next and corpus:token(seq, place + 2))
      end
      if n > 0 then
        table.sort(seen) table.sort(places[m])
        assert(table.concat(seen, " ") == table.concat(places[m], " "), where .. ": what follows")
      end
    end
  end
end

function P:observe(tree)
  local seq, output = tree.seq, {}
  for i = self.begun + 1, seq:length() do output[#output + 1] = seq:token(i) end
  self.memory:set(self.run, output)
end
]]

function TestCorpus.test_everything_is_found()
  math.randomseed(7)
  local lists = { numbers(300, 3), numbers(40, 11), { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } }
  with_files(lists, function(pair)
    local earlier = 0
    for i = 1, 6 do
      local result = run(pair, LOOKS:format(literal(lists)), { prompt = " 1 2 3 1 2", tokens = 20 + i })
      lu.assertEquals(result.corpus.tokens, 300 + 40 + 12 + 3) -- the ends of the texts count
      lu.assertEquals(result.corpus.earlier, earlier)
      lu.assertEquals(#result.corpus.hash, 64)
      earlier = earlier + 20 + i + 1
    end
  end)
end

local LOOKUP = "local P = policy.define { name = 'test', uses = { draft = false, corpus = true } }\n"

function TestCorpus.test_bounds()
  with_files({ { 1 } }, function(pair)
    run(pair, LOOKUP .. [[
      function P:init(seq)
        local c = self.corpus
        for _, where in ipairs { "text", "rest" } do
          raises("corpus:longest: most = 0 is out of range: 1..64", c.longest, c, seq, where, 0)
          raises("corpus:longest: most = 65 is out of range: 1..64", c.longest, c, seq, where, 65)
          assert(c:longest(seq, where, 1) == c:longest(seq, where, 64))
          raises("seq:match: most = 0 is out of range: 1..64", seq.match, seq, 0)
          raises("seq:match: most = 65 is out of range: 1..64", seq.match, seq, 65)
          raises("seq:match: most must be an integer, not a fraction", seq.match, seq, 1.5)
          raises("corpus:places: m = 0 is out of range: 1..64", c.places, c, seq, where, 0)
          raises("corpus:places: m = 65 is out of range: 1..64", c.places, c, seq, where, 65)
          assert(select(2, c:places(seq, where, 1)) == 1 and select(2, c:places(seq, where, 64)) == 0)
          raises("corpus:places: most = 0 is out of range: 1..1024", c.places, c, seq, where, 1, 0)
          raises("corpus:places: most = 1025 is out of range: 1..1024", c.places, c, seq, where, 1, 1025)
          raises("corpus:places: m must be an integer, not a fraction", c.places, c, seq, where, 1.5)
        end
        raises('corpus:places: where must be "text" or "rest", not files', c.places, c, seq, "files", 1)
        raises('corpus:longest: where must be "text" or "rest", not no value', c.longest, c, seq)
        raises("corpus:longest: a sequence is expected, not table", c.longest, c, {}, "text")
        raises("corpus:longest: a sequence is expected, not userdata", c.longest, c, seq.tree, "text")
        raises("corpus:longest: not called as a method of a corpus", c.longest, seq, seq, "text")
        raises("a corpus has no 'longst': did you mean 'longest'?", function() return c.longst end)
        assert(c:token(seq, 1) == 1 and c:token(seq, 2) == nil and c:token(seq, 0) == nil and c:token(seq, -1) == nil)
        local place = c:places(seq, "rest", 1)[1]
        assert(c:token(seq, place) == 1 and c:token(seq, place + 1) == nil and c:token(seq, place - 1) == nil)
        for shift = 0, 62 do assert(c:token(seq, (1 << shift) + 100) == nil and c:token(seq, -(1 << shift)) == nil) end
        assert(c:token(seq, math.maxinteger) == nil and c:token(seq, math.mininteger) == nil)
      end]])
  end)
end

-- At most 1024 of 5000 places are returned, or 64 by default, and none twice.
function TestCorpus.test_of_many_places_some_are_told()
  local list = {}
  for i = 1, 5000 do list[2 * i - 1], list[2 * i] = 1, i % 10 + 2 end
  with_files({ list }, function(pair)
    run(pair, LOOKUP .. [[
      function P:init(seq)
        for most, told in pairs { [1] = 1, [7] = 7, [1023] = 1023, [1024] = 1024, [0] = 64 } do
          local places, n = self.corpus:places(seq, "rest", 1, most > 0 and most or nil)
          assert(#places == told and n == 5000)
          local seen = {}
          for _, place in ipairs(places) do
            assert(not seen[place] and self.corpus:token(seq, place) == 1)
            seen[place] = true
          end
        end
      end]])
  end)
end

function TestCorpus.test_without_files_there_are_the_text_and_earlier_outputs()
  local pair <close> = pair_of()
  local first = run(pair, LOOKUP)
  lu.assertEquals(first.corpus, { tokens = 0, earlier = 0 }) -- hash is null
  lu.assertEquals(run(pair, LOOKUP).corpus.earlier, 4)
  pair:forget()
  lu.assertEquals(run(pair, LOOKUP).corpus.earlier, 0)
  run(pair, "local P = policy.define { name = 'other' }")
  lu.assertEquals(run(pair, LOOKUP).corpus.earlier, 4) -- its own outputs, not another policy's
end

function TestCorpus.test_an_optional_one_is_there_only_with_files()
  local source = "local P = policy.define { name = 'test', uses = { draft = false, corpus = 'optional' } }\n"
    .. "function P:init() self.has = self.corpus ~= nil if self.has ~= %s then error('has') end end"
  local pair <close> = pair_of()
  for _ = 1, 2 do lu.assertNil(run(pair, source:format(false)).corpus) end
  with_files({ { 1, 2, 3 } }, function(of_files)
    lu.assertEquals(run(of_files, source:format(true)).corpus.earlier, 0)
    lu.assertEquals(run(of_files, source:format(true)).corpus.earlier, 4)
  end)
  local _, failure = pair:generate { policy = "x", prompt = " 1", source = HEAD
    .. "return policy.define { name = 'x', uses = { corpus = 'always' } }" }
  lu.assertStrContains(failure.message, 'policy.define: x: uses.corpus is not true, false or "optional"')
end

function TestCorpus.test_a_file_that_cannot_be_read_is_named()
  local pair, failure = dt.fake { vocab = 12, corpus = "/no/such/file" }
  lu.assertNil(pair)
  lu.assertEquals({ failure.kind, failure.message },
                  { "input", "/no/such/file: cannot read the corpus: No such file or directory" })
  local path = file_of {}
  pair, failure = dt.fake { vocab = 12, corpus = { path } }
  os.remove(path)
  lu.assertNil(pair)
  lu.assertEquals(failure.message, path .. ": the file is empty, expected text")
  pair, failure = dt.fake { vocab = 12, corpus = {} }
  lu.assertNil(pair)
  lu.assertEquals(failure.message, "corpus: expected at least one file")
end

-- The second run of the same text copies all of the first's answer.
function TestCorpus.test_suffix_finds_an_answer_again()
  local pair <close> = pair_of()
  local function iterations()
    local stats = assert(pair:generate { policy = "suffix", prompt = " 1 2 3 4 5", tokens = 100,
                                         params = { factor = 4 } }).stats
    return stats.iterations, stats.output_hash
  end
  local before, hash = iterations()
  local again, same = iterations()
  lu.assertEquals(hash, same)
  lu.assertTrue(again < before / 2)
  pair:forget()
  lu.assertEquals(iterations(), before)
end

os.exit(lu.LuaUnit.run())
