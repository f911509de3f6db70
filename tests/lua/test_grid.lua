-- dt.grid.
local lu = require "luaunit"
local grid = require "dt.api.grid"

TestGrid = {}

function TestGrid.test_keys_are_sorted_and_the_last_varies_fastest()
  lu.assertEquals(grid { b = { 1, 2 }, a = { "x", "y" } },
                  { { a = "x", b = 1 }, { a = "x", b = 2 }, { a = "y", b = 1 }, { a = "y", b = 2 } })
end

function TestGrid.test_ranges_include_their_end_and_keep_integers()
  local points = grid { K = { from = 2, to = 8, step = 3 } }
  lu.assertEquals(points, { { K = 2 }, { K = 5 }, { K = 8 } })
  lu.assertEquals(math.type(points[1].K), "integer")
  lu.assertTrue(grid { tau = { from = 0.1, to = 0.3, step = 0.1 } }[3].tau == 0.3)
  lu.assertEquals(grid { n = { from = 3, to = 1, step = -1 } }, { { n = 3 }, { n = 2 }, { n = 1 } })
  lu.assertEquals(#grid { n = { from = 1, to = 4 } }, 4)
end

function TestGrid.test_an_empty_table_is_one_empty_point() lu.assertEquals(grid {}, { {} }) end

function TestGrid.test_mistakes_name_the_key()
  lu.assertErrorMsgContains("K is a number", grid, { K = 3 })
  lu.assertErrorMsgContains("K is an empty list", grid, { K = {} })
  lu.assertErrorMsgContains("K needs numbers from and to", grid, { K = { from = 1 } })
  lu.assertErrorMsgContains("a step that is not 0", grid, { K = { from = 1, to = 2, step = 0 } })
  lu.assertErrorMsgContains("K: there is no value between 2 and 1", grid, { K = { from = 2, to = 1 } })
end

os.exit(lu.LuaUnit.run())
