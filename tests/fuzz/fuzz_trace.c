/* Any bytes as a trace. If trace.read accepts it, a page can be made from it (without running dot). */
#include "fuzz_lua.h"

static const char reader[] =
    "local trace, trees, page = require 'dt.trace', require 'dt.trace_trees', require 'dt.trace_page'\n"
    "return function(path)\n"
    "  local found, message = trace.read(path)\n"
    "  if not found then return message end\n"
    "  page(found, trees.draw(found.iterations, false))\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_lua(reader, fuzz_file(bytes, size));
  return 0;
}
