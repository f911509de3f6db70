-- Reports on experiments, as files.
--
--   report.write({ record.read "main.jsonl" }, { "main.jsonl" })   -- main/report.md, main/report.html, figures
local answers = require "dt.answers"
local columns = require "dt.report.columns"
local figure = require "dt.draw.figure"
local page = require "dt.draw.page"
local shell = require "dt.shell"
local summary = require "dt.report.summary"
local visible = require "dt.draw.visible"

local report = { document = require "dt.report.document" }

local function write(path, text)
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  local ok, failed = file:write(text)
  local closed, unclosed = file:close()
  if ok and closed then return true end
  return nil, ("%s: %s"):format(path, failed or unclosed)
end

local function contents(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- Changes a text so that spreadsheets do not read it as a formula; numbers stay as they are.
local function no_formula(text) return text:find "^%s*[=+@-]" and not tonumber(text) and "'" .. text or text end

-- All numbers as CSV, for other programs: each metric of every arm, over all texts and by set.
local function numbers(files)
  local lines = { "experiment,set,arm,metric,n,mean,deviation,low,high" }
  local function quoted(text) return '"' .. no_formula(visible.line(text)):gsub('"', '""') .. '"' end
  local function number(x) return x and ("%.10g"):format(x) or "" end
  for _, file in ipairs(files) do
    local s = summary.new(file)
    for _, set in ipairs { "", table.unpack(s.sets) } do
      for _, arm in ipairs(s.arms) do
        for _, column in ipairs(columns.EVERYTHING) do
          local d = s:describe(column[2], { arm = arm.label, set = set ~= "" and set or nil })
          if d then
            lines[#lines + 1] = table.concat({ quoted(file.head.experiment), quoted(set), quoted(arm.label), column[2],
              d.n, number(d.mean), number(d.deviation), number(d.low), number(d.high) }, ",")
          end
        end
      end
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- Writes the report on experiments, read from paths, into a folder (nil: the first path without .jsonl): report.md,
-- report.tex (the tables), report.csv (all numbers), the figures, and report.html, which contains all of these; of
-- experiments with conversations also their answers (dt.answers), each in a folder of its own if there are several
-- experiments. Returns the folder, and a message if figures could not be drawn; or nil and a message. lead: items of
-- the document that come first; nil: none.
function report.write(experiments, paths, folder, lead)
  local bare = paths[1]:gsub("%.jsonl$", "")
  folder = folder or bare ~= paths[1] and bare or bare .. "-report"
  local names = {}
  for i, path in ipairs(paths) do names[i] = path:match "([^/]+)$":gsub("%.jsonl$", ""):gsub("[^%w_-]", "-") end
  local document = report.document(experiments, names)
  table.move(document, 1, #document, #(lead or {}) + 1)
  table.move(lead or {}, 1, #(lead or {}), 1, document)
  local status, message = shell("mkdir -p -- %s", folder)
  if status ~= 0 then return nil, (message:gsub("^mkdir: ", ""):gsub("\n.*", "")) end
  local figures = {}
  for _, item in ipairs(document) do figures[#figures + 1] = item.figure end
  local drawn, why = figure.draw(figures, folder)
  if drawn == nil then return nil, why end
  local ok
  local files = { { "report.csv", numbers(experiments) }, { "report.tex", page.latex(document) } }
  local narrow = drawn and figure.narrow(figures, folder) or {}
  local number = 0
  local html = page.html(document, function(f)
    number = number + 1
    if drawn then return contents(("%s/%s.svg"):format(folder, f.name)), narrow[number] end
  end, files)
  table.move({ { "report.md", page.markdown(document, drawn) }, { "report.html", html } }, 1, 2, #files + 1, files)
  for _, file in ipairs(files) do
    ok, message = write(folder .. "/" .. file[1], file[2])
    if not ok then return nil, message end
  end
  for i, experiment in ipairs(experiments) do
    ok, message = answers.write(experiment, #experiments > 1 and folder .. "/" .. names[i] or folder)
    if not ok then return nil, message end
  end
  return folder, why
end

return report
