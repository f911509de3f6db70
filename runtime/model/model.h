/* A checkpoint (a folder with config.json and *.safetensors) -> one canonical decoder model, whatever the family. */
#ifndef DT_MODEL_H
#define DT_MODEL_H

#include "model/gguf.h"
#include "model/weights.h"
#include "system/status.h"

#define MODEL_MAX_EOS 8

typedef struct model model;

/* Opens and validates the files; weights are read from them while the model is open. Errors name file, tensor, shape
 * found and shape expected. Free with model_close. */
dt_status model_open(const char *path, model **out, dt_error *err);
void model_close(model *m); /* NULL is allowed; the description and its weights are gone afterwards */

const dt_model_desc *model_desc(const model *m);
/* The name of the tensor with this byte of one of its files; NULL: there is none. */
const char *model_tensor_at(const model *m, const char *file, uint64_t offset);
int model_eos(const model *m, int32_t eos[MODEL_MAX_EOS]); /* end-of-text ids of config.json; how many */

const char *model_family(const model *m); /* Hugging Face's name, also of GGUF files: "llama"; static */

/* The file that it lies in, with a tokenizer of its own; NULL: a folder's files. */
const gguf *model_gguf(const model *m);

#endif
