/* Any bytes as a trace: what trace.read takes, a page can be made of (dot itself is left out). */
#include "fuzz_lua.h"

static const char reader[] =
    "local trace, page = require 'dt.trace', require 'dt.trace_page'\n"
    "return function(path)\n"
    "  local found, message = trace.read(path)\n"
    "  if not found then return message end\n"
    "  local drawings = {}\n"
    "  for i, iteration in ipairs(found.iterations) do drawings[i] = trace.graph(iteration) end\n"
    "  page(found, drawings)\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_lua(reader, fuzz_file(bytes, size));
  return 0;
}
