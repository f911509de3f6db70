-- Texts of files and of models, made fit to be shown: what moves a terminal's cursor, turns the direction of writing or
-- may not stand in XML (U+FFFE, U+FFFF) is replaced. Texts are UTF-8, as dt.json decodes them.
local visible = {}

-- Control characters of one byte; of two (C1); U+2028 to U+202E; U+2066 to U+2069; U+FFFE and U+FFFF.
local CONTROLS = { "%c", "\xC2[\x80-\x9F]", "\xE2\x80[\xA8-\xAE]", "\xE2\x81[\xA6-\xA9]", "\xEF\xBF[\xBE\xBF]" }

local function replaced(text, by)
  for _, pattern in ipairs(CONTROLS) do text = text:gsub(pattern, by) end
  return text
end

-- On one line, with a blank for each.
function visible.line(text) return replaced(text, " ") end

-- The same, lines as they are.
function visible.lines(text)
  return replaced(text, function(c) return c == "\n" and c or " " end)
end

local PICTURES = { ["\127"] = "␡" }
for byte = 0, 31 do PICTURES[string.char(byte)] = utf8.char(0x2400 + byte) end

local function picture(c) return PICTURES[c] or "\u{FFFD}" end

-- With a picture for each: ␛. known: what stands for some of them, or true for those that stay.
function visible.pictures(text, known)
  return replaced(text, function(c)
    local own = known[c]
    return own == true and c or own or picture(c)
  end)
end

-- At most n characters, the middle left out: names often differ in their ends.
function visible.cut(text, n)
  local length = utf8.len(text)
  if length <= n then return text end
  local tail = (n - 1) // 3
  return text:sub(1, utf8.offset(text, n - tail) - 1) .. "…" .. text:sub(utf8.offset(text, -tail))
end

return visible
