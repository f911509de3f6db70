-- Makes texts of files and models safe to show: replaces characters that move a terminal's cursor, change the writing
-- direction or are not allowed in XML (U+FFFE, U+FFFF). Texts must be valid UTF-8, as from dt.json.
local visible = {}

-- Control characters of one byte and of two bytes (C1); U+2028 to U+202E; U+2066 to U+2069; U+FFFE and U+FFFF.
local CONTROLS = { "%c", "\xC2[\x80-\x9F]", "\xE2\x80[\xA8-\xAE]", "\xE2\x81[\xA6-\xA9]", "\xEF\xBF[\xBE\xBF]" }

local function replaced(text, by)
  for _, pattern in ipairs(CONTROLS) do text = text:gsub(pattern, by) end
  return text
end

-- The text as one line, with a blank for each of these characters.
function visible.line(text) return replaced(text, " ") end

-- The same, with line breaks kept.
function visible.lines(text)
  return replaced(text, function(c) return c == "\n" and c or " " end)
end

local PICTURES = { ["\127"] = "␡" }
for byte = 0, 31 do PICTURES[string.char(byte)] = utf8.char(0x2400 + byte) end

local function picture(c) return PICTURES[c] or "\u{FFFD}" end

-- Replaces each of these characters by a picture such as ␛. known: other replacements for some of them, or true for
-- those that stay.
function visible.pictures(text, known)
  return replaced(text, function(c)
    local own = known[c]
    return own == true and c or own or picture(c)
  end)
end

-- Shortens a text to at most n characters by leaving out its middle, since names often differ at their ends.
function visible.cut(text, n)
  local length = utf8.len(text)
  if length <= n then return text end
  local tail = (n - 1) // 3
  return text:sub(1, utf8.offset(text, n - tail) - 1) .. "…" .. text:sub(utf8.offset(text, -tail))
end

return visible
