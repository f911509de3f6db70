/* Any bytes as a set of prompts of a sweep: lines of {"id": .., "prompt": ".."}. */
#include "fuzz_lua.h"

static const char reader[] = "local experiment = require 'dt.experiment'\n"
                             "return function(path)\n"
                             "  local list, message = experiment.prompts { sets = { path }, chars = 20 }\n"
                             "  if not list then return message end\n"
                             "  for _, prompt in ipairs(list) do assert(utf8.len(prompt.text) <= 20) end\n"
                             "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_lua(reader, fuzz_file(bytes, size));
  return 0;
}
