/* The tokenizer of a GGUF file: keys tokenizer.ggml.*. */
#ifndef DT_LOAD_GGUF_H
#define DT_LOAD_GGUF_H

#include "model/gguf.h"
#include "text/tokenizer.h"

/* Reads models "gpt2" (byte-level BPE, merges) and "llama" (SentencePiece's, scores). What is encoded as is done for the
 * tokenizer.json of the same model; where the file does not say it (NFC), by its `pre`. DT_EINPUT names the file, the key and
 * what is supported. Free with tok_close; g may be closed before. */
dt_status tok_open_gguf(const gguf *g, tok **out, dt_error *err);

#endif
