/* Reads a draft head's files into its canonical description. Folders (config.json, *.safetensors): EAGLE-3 in the
 * layouts of SafeAILab, SpecForge and speculators; EAGLE-1 and EAGLE-2, which share a layout; Medusa; Gemma 4's
 * assistant. GGUF files: EAGLE-3. Of the own files of Qwen3.5 and GLM-4.5: their MTP layer. */
#ifndef DT_HEAD_H
#define DT_HEAD_H

#include "model/weights.h"
#include "system/status.h"

typedef struct head head;

/* *is: the files are a draft head and not a model; false also if they cannot be read. DT_ENOMEM: unknown. */
dt_status head_is(const char *path, bool *is, dt_error *err);

/* Opens and validates the files; its weights are read from them while it is open. `layers`: "2,15,27": the head reads
 * the inputs of these layers; NULL: as its files say. Errors name file, tensor, the value found and the one
 * expected. */
dt_status head_open(const char *path, const dt_shape *target, const char *layers, head **out, dt_error *err);
/* The head that a target's own files have beside it, as Qwen3.5's do ("mtp"). DT_EINPUT if they have none. */
dt_status head_open_own(const char *target_path, const dt_shape *target, head **out, dt_error *err);
void head_close(head *h); /* NULL is allowed; the description is gone afterwards */

const dt_head_desc *head_desc(const head *h);
const char *head_said(const head *h); /* its kind and its inputs: "eagle3, layers 2,15,27"; "medusa, final norm" */

#endif
