/* The tokenizer of a GGUF file: keys tokenizer.ggml.*. */
#ifndef DT_LOAD_GGUF_H
#define DT_LOAD_GGUF_H

#include "model/gguf.h"
#include "text/tokenizer.h"

/* Reads models "gpt2" (byte-level BPE, merges) and "llama" (SentencePiece, scores). Ids are those of the same model's
 * tokenizer.json; the file's `pre` decides details that its other keys lack (NFC). DT_EINPUT names the file, the key
 * and the supported values. Free with tok_close; g may be closed before. */
dt_status tok_open_gguf(const gguf *g, tok **out, dt_error *err);

#endif
