/* A draft head's files -> its canonical description. Folders (config.json, *.safetensors) with three layouts of EAGLE-3,
 * SafeAILab's, SpecForge's and that of speculators, with that of EAGLE-1 and EAGLE-2, whose heads are one, and with Medusa's;
 * GGUF files with EAGLE-3's. */
#ifndef DT_HEAD_H
#define DT_HEAD_H

#include "model/weights.h"
#include "system/status.h"

typedef struct head head;

/* *is: what lies there is a draft head rather than a model; false too where nothing can be read. DT_ENOMEM: nobody knows. */
dt_status head_is(const char *path, bool *is, dt_error *err);

/* Opens and validates the files, which are read while the head is open. `layers`: "2,15,27": which layers' inputs it reads,
 * whatever its files say; NULL: as these say. Errors name file, tensor, what was found and what was expected. */
dt_status head_open(const char *path, const dt_shape *target, const char *layers, head **out, dt_error *err);
void head_close(head *h); /* NULL is allowed; the description is gone afterwards */

const dt_head_desc *head_desc(const head *h);
const char *head_said(const head *h); /* its kind and what it reads: "eagle3, layers 2,15,27"; "medusa, final norm" */

#endif
