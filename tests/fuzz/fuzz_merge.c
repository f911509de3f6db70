/* Any bytes as the file of one shard, whose runs are divided among two. If merge.together accepts them, merge.missing
 * can name the missing runs. */
#include "fuzz_lua.h"

static const char reader[] = "local merge, record = require 'dt.merge', require 'dt.record'\n"
                             "return function(path)\n"
                             "  local file, message = record.read(path)\n"
                             "  if not file then return message end\n"
                             "  local parts = { { head = file.head, runs = {} }, { head = file.head, runs = {} } }\n"
                             "  for i, run in ipairs(file.runs) do table.insert(parts[1 + i % 2].runs, run) end\n"
                             "  local whole, unfit = merge.together(parts, { path, path })\n"
                             "  if not whole then return unfit end\n"
                             "  assert(#whole.runs <= #file.runs, 'a run occurs twice')\n"
                             "  local missing = merge.missing(whole.shards, whole.runs)\n"
                             "  assert(missing == nil or #missing > 0, 'missing runs are not named')\n"
                             "  assert(merge.grouped({ file }, { path }))\n"
                             "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz_lua(reader, fuzz_file(bytes, size));
  return 0;
}
