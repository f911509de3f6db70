/* Tokens known to end a text: see ends.h. The list is llama.cpp's, for the families that we read. */
#include "text/ends.h"

#include "text/steps.h"

#include <string.h>

dt_status add_known_ends(tok *t, dt_error *err) {
  static const char *const known[] = {"<|eot_id|>",
                                      "<|im_end|>",
                                      "<|end|>",
                                      "<|endoftext|>",
                                      "<|end_of_text|>",
                                      "<|eom_id|>",
                                      "</s>",
                                      "<eos>",
                                      "<EOT>",
                                      "[EOS]",
                                      "[EOT]",
                                      "<end_of_turn>",
                                      "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};
  dt_status status = DT_OK;
  for (size_t i = 0; status == DT_OK && i < sizeof known / sizeof *known; i++) {
    int32_t id = vocab_find(&t->strings, known[i], strlen(known[i]), "", 0);
    if (id >= 0 && t->strings.entry[id].of & VOCAB_ADDED) status = add_end(t, id, err);
  }
  return status;
}
