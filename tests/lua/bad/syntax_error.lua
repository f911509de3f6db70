-- No Lua at all.
-- expect: syntax error near 'is'
this is no policy
