/* The metadata of a GGUF file as families read it: an object of numbers, bools and short texts. */
#ifndef DT_GGUF_KEYS_H
#define DT_GGUF_KEYS_H

#include "model/gguf.h"

#include <cjson/cJSON.h>

/* Keys of the architecture are called without its name: "llama.block_count" is "block_count". An array of equal
 * numbers, one for each layer, is that number; a short array of other numbers or of truths is a list; any other array
 * is a text, so that nobody takes it for a number. vocab_size is the number of rows that the embedding has. The
 * architecture must be there. Free with cJSON_Delete. */
dt_status gguf_keys(const gguf *g, cJSON **out, dt_error *err);

#endif
