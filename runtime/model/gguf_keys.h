/* Converts the metadata of a GGUF file to what families read: a JSON object of numbers, bools and short strings. */
#ifndef DT_GGUF_KEYS_H
#define DT_GGUF_KEYS_H

#include "model/gguf.h"

#include <cjson/cJSON.h>

/* Keys of the architecture lose its name: "llama.block_count" becomes "block_count". An array of equal numbers becomes
 * that number; a short array of different numbers or of bools becomes a list; any other array becomes a string, so that
 * it cannot be mistaken for a number. vocab_size is set to the number of rows of the embedding. The key
 * general.architecture is required. Free with cJSON_Delete. */
dt_status gguf_keys(const gguf *g, cJSON **out, dt_error *err);

#endif
