/* Reads a checkpoint (a folder with config.json and *.safetensors, or a GGUF file) of any family into the canonical
 * description. */
#ifndef DT_MODEL_H
#define DT_MODEL_H

#include "model/gguf.h"
#include "model/weights.h"
#include "system/status.h"

#define MODEL_MAX_EOS 8

typedef struct model model;

/* Opens and validates the files; weights are read from them as long as the model is open. Errors name the file, the
 * tensor, and the shapes found and expected. Free with model_close. */
dt_status model_open(const char *path, model **out, dt_error *err);
/* The same with options for its rotation. NULL: none. */
dt_status model_open_turned(const char *path, const dt_rope *rope, model **out, dt_error *err);
void model_close(model *m); /* NULL is allowed; the description and its weights are gone afterwards */

const dt_model_desc *model_desc(const model *m);
/* Returns the name of the tensor that contains this byte of one of the files; NULL: there is none. */
const char *model_tensor_at(const model *m, const char *file, uint64_t offset);
int model_eos(const model *m,
              int32_t eos[MODEL_MAX_EOS]); /* the end-of-text ids of the configuration; returns how many */

const char *model_family(const model *m); /* Hugging Face's name, also for GGUF files: "llama"; static */

/* Returns the number of positions for which the rotation was computed; 0: it does not depend on them. */
int model_rope_context(const model *m);

/* Returns the GGUF file of the model, which also has its tokenizer; NULL: the model is a folder. */
const gguf *model_gguf(const model *m);

#endif
