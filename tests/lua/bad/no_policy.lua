-- Returns something else.
-- expect: the file must return what policy.define gave
return { draft = print }
