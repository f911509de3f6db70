/* Any bytes as a file for --prompts. Each prompt is the whole content of one of its lines. */
#include "fuzz.h"

#include "cli/prompts.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const char *path = fuzz_file(bytes, size);
  prompt_list list = {0};
  dt_error err;
  dt_status status = prompts_add_lines(&list, path, &err);
  if (status) fuzz_check_failure(status, &err, path);
  for (int i = 0; i < list.n; i++)
    if (list.list[i].len == 0 || list.list[i].len > size || strlen(list.list[i].text) != list.list[i].len) abort();
  prompts_free(&list);
  return 0;
}
