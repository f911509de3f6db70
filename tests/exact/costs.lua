-- Costs for the tests of exactness, with cheap rows. Costs must not change the tokens, and measuring the real costs
-- would take longer than the tests.
return { contexts = { 128 }, rows = { 1, 257 }, target = { { 1.0, 9.0 } }, draft = { { 0.125, 1.125 } } }
