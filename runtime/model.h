/* A checkpoint folder (config.json, *.safetensors) -> one canonical decoder model, whatever the family. Model families are
 * told apart in model.c only. */
#ifndef DT_MODEL_H
#define DT_MODEL_H

#include "backend.h"

#define MODEL_MAX_EOS 8

typedef struct model model;

/* Maps and validates the files. Errors name file, tensor, shape found and shape expected. Free with model_close. */
dt_status model_open(const char *folder, model **out, dt_error *err);
void model_close(model *m); /* NULL is allowed; the description and its weights are gone afterwards */

const dt_model_desc *model_desc(const model *m);
int model_eos(const model *m, int32_t eos[MODEL_MAX_EOS]); /* end-of-text ids of config.json; how many */

#endif
