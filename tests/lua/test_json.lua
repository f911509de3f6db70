-- dt.json.
local lu = require "luaunit"
local json = require "dt.json"

TestJson = {}

function TestJson.test_values_survive_the_round_trip()
  local text = "tab\t\"quote\" \\ \0 \27 ü 🌳"
  for _, value in ipairs { 0, -7, math.maxinteger, 0.1, 1e300, 2.0 ^ 60, true, false, "", text } do
    lu.assertEquals(json.decode(json.encode(value)), value)
  end
  local nested = { list = { 1, 2, { deep = { true } } }, empty = json.array(), object = {} }
  lu.assertEquals(json.decode(json.encode(nested)), nested)
  lu.assertEquals(json.decode(json.encode(nested, true)), nested)
end

function TestJson.test_keys_are_sorted()
  lu.assertEquals(json.encode { b = 1, a = { 2, 3 }, c = {} }, '{"a": [2, 3], "b": 1, "c": {}}')
  lu.assertEquals(json.encode({ b = 1, a = { c = 2 } }, true), '{\n  "a": {\n    "c": 2\n  },\n  "b": 1\n}')
end

function TestJson.test_what_json_has_no_word_for_is_null_or_an_error()
  lu.assertEquals(json.encode { 0 / 0, math.huge, json.null }, "[null, null, null]")
  lu.assertErrorMsgContains("a function cannot be JSON", json.encode, { f = print })
  lu.assertErrorMsgContains("a key is a number", json.encode, { [3] = 1 })
  local loop = {}
  loop.loop = loop
  lu.assertErrorMsgContains("contains itself", json.encode, loop)
end

function TestJson.test_null_is_left_out_of_objects_and_kept_in_arrays()
  lu.assertEquals(json.decode '{"a": null, "b": 1}', { b = 1 })
  lu.assertEquals(json.decode "[null, 1]", { json.null, 1 })
end

function TestJson.test_numbers_keep_their_type()
  lu.assertEquals(math.type(json.decode "12"), "integer")
  lu.assertEquals(math.type(json.decode "12.0"), "float")
  lu.assertEquals(math.type(json.decode "1e2"), "float")
  lu.assertEquals(json.decode "-0.5E-1", -0.05)
end

function TestJson.test_escapes()
  lu.assertEquals(json.decode [["\u00fc\ud83c\udf33\n\/\u0000"]], "ü🌳\n/\0")
  lu.assertEquals(json.decode [["\ud83c!"]], "\u{FFFD}!")
end

function TestJson.test_bad_text_is_nil_and_says_where()
  for text, message in pairs {
    [""] = "expected a value", ["[1,]"] = "expected a value", ["[1 2]"] = "',' or ']'", ['{"a" 1}'] = "':'",
    ["{a: 1}"] = "a key in quotes", ['"open'] = "unterminated string", ['"\\x"'] = "invalid escape",
    ["01"] = "expected a value", ["1."] = "expected a value", ["nul"] = "expected a value",
    ["1e400"] = "the number is too large", ["[-1e400]"] = "the number is too large",
    ['"caf\xe9"'] = "invalid UTF-8 at byte 5", ["\xff\xfe"] = "invalid UTF-8 at byte 1",
    ["[1]\n]"] = "line 2: unexpected text after the value", [("["):rep(1000)] = "nested too deeply",
  } do
    local value, got = json.decode(text)
    lu.assertNil(value, text)
    lu.assertStrContains(got, message)
  end
end

os.exit(lu.LuaUnit.run())
