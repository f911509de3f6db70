/* Short names of GGUF files: OWNER/NAME:Q4_K_M. */
#ifndef DT_GGUF_NAME_H
#define DT_GGUF_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define GGUF_DEFAULT "Q4_K_M" /* chosen if there are several files and none was named */

/* Returns whether the name ends in .gguf, in upper or lower case. */
bool gguf_is_name(const char *file);

/* A model may be split into several files, named as by llama.cpp's gguf-split: model-00001-of-00003.gguf, with five
 * digits each. The first part has the metadata and represents the model in lists. gguf_part returns whether a file is
 * such a part, and sets its number (from 1) and the number of parts; otherwise they do not change. */
bool gguf_part(const char *file, int *number, int *count);
bool gguf_is_later_part(const char *file);
/* Writes the path of part `number` of the model to which `part` belongs to out[size]. False: the file is not a part, or
 * `size` is too small. */
bool gguf_part_path(const char *part, int number, char *out, size_t size);

/* Returns whether `spec` means this file (a path relative to the model's folder). `spec` is the path, the file's name,
 * or a kind of weights in the path, in upper or lower case: Q4_K_M matches model-Q4_K_M.gguf, model.q4_k_m.gguf and
 * Q4_K_M/model.gguf, but Q4_K matches none of them. The name of one part matches all parts of a model. */
bool gguf_answers(const char *file, const char *spec);

#endif
