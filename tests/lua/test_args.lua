-- dt.args: a driver's command line.
local lu = require "luaunit"
local args = require "dt.api.args"

local spec = {
  doc = "a test",
  options = {
    { "tokens", 128, short = "n", min = 1, doc = "new tokens" },
    { "max_len", 0.5, doc = "a number" },
    { "quick", false, doc = "fewer runs" },
    { "mode", "a", one_of = { "a", "b" } },
  },
}

local with_rest = { options = spec.options, rest = "FILE" }

local function parse(...) return args.parse(spec, { ... }) end

TestArgs = {}

function TestArgs.test_defaults()
  lu.assertEquals(parse(), { tokens = 128, max_len = 0.5, quick = false, mode = "a", rest = {}, load = {} })
end

function TestArgs.test_every_spelling_of_an_option()
  lu.assertEquals(parse("--tokens", "7").tokens, 7)
  lu.assertEquals(parse("--tokens=7").tokens, 7)
  lu.assertEquals(parse("-n", "7").tokens, 7)
  lu.assertEquals(parse("--max-len", "2").max_len, 2.0)
  lu.assertTrue(parse("--quick").quick)
  lu.assertFalse(parse("--quick", "--quick=false").quick)
end

function TestArgs.test_a_driver_says_what_costs_its_policies_count_with_unless_it_is_told()
  lu.assertEquals(args.parse({ doc = "x", costs = "table" }, {}).load.costs, "table")
  lu.assertEquals(args.parse({ doc = "x", costs = "table" }, { "--costs", "learn" }).load.costs, "learn")
  lu.assertNil(args.parse({ doc = "x" }, {}).load.costs)
  lu.assertNil((args.parse({ doc = "x" }, { "--costs", "measured" })))
end

function TestArgs.test_an_option_may_read_its_text_itself()
  local own = { options = { { "even", nil, short = "e", also = "two", value = "N", doc = "a number",
    read = function(text, given)
      if tonumber(text) % 2 == 0 then return tonumber(text) end
      return nil, given .. ": expected an even number"
    end } } }
  lu.assertNil(args.parse(own, {}).even)
  for _, name in ipairs { "-e", "--even", "--two" } do
    lu.assertEquals(args.parse(own, { name, "4" }).even, 4)
    lu.assertEquals({ args.parse(own, { name, "5" }) }, { nil, name .. ": expected an even number" })
  end
  lu.assertEquals({ args.parse(own, { "--even=1.5" }) }, { nil, "--even: expected an even number" })
  lu.assertEquals({ args.parse(own, { "--even" }) }, { nil, "--even needs a value" })
  lu.assertStrContains(args.help(own, "x"), "-e, --even N ")
end

function TestArgs.test_shared_options_are_for_dt_load()
  local opts = parse("-m", "T", "-md", "D", "-t", "2", "-c", "100", "--backend", "cpu")
  lu.assertEquals(opts.load, { target = "T", draft = "D", threads = 2, ctx = 100, backend = "cpu" })
  lu.assertEquals(parse("--rope-scaling", "yarn", "--rope-scale=4", "--yarn-orig-ctx", "32768").load,
    { rope_scaling = "yarn", rope_scale = 4, yarn_orig_ctx = 32768 })
  lu.assertEquals(parse("--model", "T", "--model-draft=D").load, { target = "T", draft = "D" })
  lu.assertEquals(parse("--model=-m", "-md", "-mdx").load, { target = "-m", draft = "-mdx" })
end

function TestArgs.test_further_arguments()
  lu.assertEquals(args.parse(with_rest, { "a", "--quick", "-", "--", "--quick" }).rest, { "a", "-", "--quick" })
  lu.assertEquals({ parse "a" }, { nil, "unexpected argument 'a' (see --help)" })
end

function TestArgs.test_an_option_for_many_takes_all_that_follows_up_to_the_next()
  local many = { options = { { "file", many = "FILE", doc = "files" }, { "quick", false } }, rest = "NAME" }
  lu.assertEquals(args.parse(many, {}).file, {})
  local opts = args.parse(many, { "x", "--file", "a", "b", "--quick", "y", "--file=c" })
  lu.assertEquals(opts, { file = { "a", "b", "c" }, quick = true, rest = { "x", "y" }, load = {} })
  lu.assertEquals({ args.parse(many, { "--file" }) }, { nil, "--file needs a value" })
  lu.assertStrContains(args.help(many, "x"), "--file FILE...")
end

function TestArgs.test_bad_usage_says_what_is_right()
  for _, case in ipairs {
    { { "--foo" }, "unknown option --foo (see --help)" },
    { { "--foo=3" }, "unknown option --foo (see --help)" },
    { { "-x" }, "unknown option -x (see --help)" },
    { { "--tokens" }, "--tokens needs a value" },
    { { "--tokens", "--threads=2" }, "--tokens needs a value, but the option --threads=2 follows" },
    { { "--model", "-m", "x" }, "--model needs a value, but the option -m follows" },
    { { "--tokens", "x" }, "--tokens = x is not an integer" },
    { { "--threads", "4294967297" }, "--threads = 4294967297 is out of range: 1..1024" },
    { { "--ctx", "4294967297" }, "--ctx = 4294967297 is out of range: 1..2147483647" },
    { { "-n", "0" }, "--tokens = 0 is out of range: 1.." },
    { { "--mode", "c_d" }, "--mode = c_d is not one of a, b" },
    { { "--threads", "0" }, "--threads = 0 is out of range: 1..1024" },
  } do
    lu.assertEquals({ args.parse(spec, case[1]) }, { nil, case[2] })
  end
end

function TestArgs.test_help_is_asked_for()
  lu.assertEquals({ parse "--help" }, {})
  local text = args.help(with_rest, "sweep")
  lu.assertStrContains(text, "usage: dtrun run sweep [options] FILE...")
  lu.assertStrContains(text, "-n, --tokens INTEGER")
  lu.assertStrContains(text, "new tokens (1..; default 128)")
  lu.assertStrContains(text, "--backend STRING")
end

function TestArgs.test_a_wrong_declaration_raises()
  lu.assertErrorMsgContains("unknown key 'option'", args.parse, { option = {} }, {})
  lu.assertErrorMsgContains("two parameters named threads", args.parse, { options = { { "threads", 1 } } }, {})
end

os.exit(lu.LuaUnit.run())
