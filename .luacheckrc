std = "lua54"
max_line_length = 120
exclude_files = { "build", "tests/lua/bad" }
files["tests/lua"] = { ignore = { "11[123]/Test.*" } } -- LuaUnit finds its suites among the globals
