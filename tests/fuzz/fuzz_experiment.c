/* Any bytes as an experiment file. If record.read accepts it, a report can be made from it. */
#include "fuzz_lua.h"

static const char reader[] =
    "local record, report, page = require 'dt.record', require 'dt.report', require 'dt.draw.page'\n"
    "local figure, statistics = require 'dt.draw.figure', require 'dt.statistics'\n"
    "-- without the bootstrap, which takes nine tenths of the time\n"
    "function statistics.interval(list) return list[2] and list[1], list[#list] end\n"
    "return function(path)\n"
    "  local file, message = record.read(path)\n"
    "  if not file then return message end\n"
    "  if not file.runs[1] then return end\n"
    "  local document, figures = report.document({ file }, { 'fuzz' }), {}\n"
    "  for _, item in ipairs(document) do figures[#figures + 1] = item.figure end\n"
    "  local script = figure.script(figures)\n"
    "  page.markdown(document, true)\n"
    "  page.html(document, function() return '<svg></svg>' end)\n"
    "  for word in script:gmatch '%f[%w]%a+%f[%W]' do\n"
    "    assert(word ~= 'inf' and word ~= 'nan', 'a figure contains inf or nan')\n"
    "  end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_lua(reader, fuzz_file(bytes, size));
  return 0;
}
