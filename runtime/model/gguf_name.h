/* Short names of GGUF files: OWNER/NAME:Q4_K_M. */
#ifndef DT_GGUF_NAME_H
#define DT_GGUF_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define GGUF_DEFAULT "Q4_K_M" /* chosen among several files if none was named */

/* Whether the last five characters are .gguf, whatever case. */
bool gguf_is_name(const char *file);

/* A model may lie in several files, as llama.cpp's gguf-split names them: model-00001-of-00003.gguf, five digits each.
 * The first has the metadata, and stands for all in lists. Whether a file is one of them: its number, from 1, and how
 * many there are; both stay as they are otherwise. */
bool gguf_part(const char *file, int *number, int *count);
bool gguf_is_later_part(const char *file);
/* The path of part `number` of the model that a part belongs to, in out[size]. False: the file is no part, or there is
 * no room. */
bool gguf_part_path(const char *part, int number, char *out, size_t size);

/* Whether the file (a path below its model's folder) is the one that `spec` means: its path, its last part, or a kind
 * of weights in its name, whatever case: Q4_K_M is in model-Q4_K_M.gguf, model.q4_k_m.gguf and Q4_K_M/model.gguf; Q4_K
 * is in none of them. A part's name means the others as well. */
bool gguf_answers(const char *file, const char *spec);

#endif
