/* Reads the tokenizer of a GGUF file: the keys tokenizer.ggml.*. */
#ifndef DT_LOAD_GGUF_H
#define DT_LOAD_GGUF_H

#include "model/gguf.h"
#include "text/tokenizer.h"

/* Reads a tokenizer of the kinds "gpt2" (byte-level BPE, merges), "llama" (SentencePiece, scores) and "gemma4". Ids are
 * those of the same model's tokenizer.json. The key `pre` decides details that the other keys lack, such as NFC.
 * DT_EINPUT names the file, the key and the supported values. Free with tok_close; g may be closed before. */
dt_status tok_open_gguf(const gguf *g, tok **out, dt_error *err);

#endif
