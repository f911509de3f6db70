/* Reads a draft head's files into its canonical description. Supported in folders (config.json, *.safetensors): EAGLE-3
 * in the layouts of SafeAILab, SpecForge and speculators; EAGLE-1 and EAGLE-2, which share a layout; Medusa; DFlash,
 * JetSpec, DSpark and DFlash2 (head_block.c); Gemma 4's assistant. In GGUF files: EAGLE-3 and block heads. In the
 * target's own files (Qwen3.5, GLM-4.5): the MTP layer. */
#ifndef DT_HEAD_H
#define DT_HEAD_H

#include "model/weights.h"
#include "system/status.h"

typedef struct head head;

/* Finds out whether the files are a draft head and not a model; false also if they cannot be read. DT_ENOMEM: unknown.
 */
dt_status head_is(const char *path, bool *is, dt_error *err);

/* Opens and validates the files of a head; weights are read from them as long as it is open. rope: the target's, of
 * which only the context matters, since a head has a rotation of its own. layers: "2,15,27": the layers of the target
 * whose inputs the head reads; NULL: those that the files name. Errors name the file, the tensor, and the values found
 * and expected. */
dt_status head_open(const char *path, const dt_rope *rope, const dt_shape *target, const char *layers, head **out,
                    dt_error *err);
/* Opens the MTP layer in a target's own files, such as Qwen3.5's, as a head, which rotates as the target does.
 * DT_EINPUT: there is none. */
dt_status head_open_own(const char *target_path, const dt_rope *rope, const dt_shape *target, head **out,
                        dt_error *err);
void head_close(head *h); /* NULL is allowed; the description is gone afterwards */

const dt_head_desc *head_desc(const head *h);
const char *
head_said(const head *h); /* describes its kind and its inputs: "eagle3, layers 2,15,27"; "medusa, final norm" */

#endif
