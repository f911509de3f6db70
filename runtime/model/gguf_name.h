/* Short names of GGUF files: OWNER/NAME:Q4_K_M. */
#ifndef DT_GGUF_NAME_H
#define DT_GGUF_NAME_H

#include <stdbool.h>

#define GGUF_DEFAULT "Q4_K_M" /* chosen among several files if none was named */

/* Whether the last five characters are .gguf, whatever case. */
bool gguf_is_name(const char *file);

/* Whether the file (a path below its model's folder) is the one that `spec` means: its path, its last part, or a kind of weights
 * in its name, whatever case: Q4_K_M is in model-Q4_K_M.gguf, model.q4_k_m.gguf and Q4_K_M/model.gguf; Q4_K is in none of them. */
bool gguf_answers(const char *file, const char *spec);

#endif
