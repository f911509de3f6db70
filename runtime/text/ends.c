/* Tokens known to end a text: see ends.h. The list is llama.cpp's, for the families that we read. */
#include "text/ends.h"

#include "text/steps.h"

/* `unless`: a token with which the same string means something else. */
static const struct {
  const char *string, *unless;
} known[] = {{"<|eot_id|>", NULL},
             {"<|im_end|>", NULL},
             {"<|end|>", "<|return|>"}, /* gpt-oss: the end of one message of several */
             {"<|return|>", NULL},
             {"<|call|>", NULL},
             {"<|endoftext|>", NULL},
             {"<|end_of_text|>", NULL},
             {"<|eom_id|>", NULL},
             {"</s>", "<eos>"}, /* Gemma: a tag of HTML */
             {"<eos>", NULL},
             {"<EOT>", NULL},
             {"[EOS]", NULL},
             {"[EOT]", NULL},
             {"<end_of_turn>", NULL},
             {"<turn|>", NULL},
             {"<\uFF5Cend\u2581of\u2581sentence\uFF5C>", NULL}};

dt_status add_known_ends(tok *t, dt_error *err) {
  dt_status status = DT_OK;
  for (size_t i = 0; status == DT_OK && i < sizeof known / sizeof *known; i++) {
    int32_t id = tok_added(t, known[i].string);
    if (id >= 0 && !(known[i].unless && tok_added(t, known[i].unless) >= 0)) status = add_end(t, id, err);
  }
  return status;
}
