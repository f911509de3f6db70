-- Costs for the tests of exactness, where a row more is cheap: no costs may change the tokens, and to measure what
-- passes really cost here would take longer than the tests.
return { contexts = { 128 }, rows = { 1, 257 }, target = { { 1.0, 9.0 } }, draft = { { 0.125, 1.125 } } }
