-- Prompts of several lengths that end alike, to see what the length of the context changes.
local contexts = {}

-- For each prompt { name =, set =, text = } and each length, a prompt of about that many tokens: the end of all texts
-- of `pool`, its own text last. Its axis "context" is the length. Returns them, and the lengths for which the pool is
-- too short.
function contexts.before(pair, prompts, pool, lengths)
  local list, missing = {}, {}
  for _, length in ipairs(lengths) do
    for _, prompt in ipairs(prompts) do
      local texts = {}
      for _, other in ipairs(pool) do
        if other.name ~= prompt.name then texts[#texts + 1] = other.text end
      end
      texts[#texts + 1] = prompt.text
      local ids = assert(pair:encode(table.concat(texts, "\n\n")))
      if #ids < length then
        if missing[#missing] ~= length then missing[#missing + 1] = length end
      else
        local text = pair:decode(table.move(ids, #ids - length + 1, #ids, 1, {}))
        list[#list + 1] = { set = prompt.set, name = ("%s@%d"):format(prompt.name, length), text = text,
                            axes = { context = length } }
      end
    end
  end
  return list, missing
end

return contexts
