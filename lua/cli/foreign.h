/* Options of llama.cpp, ollama, vLLM and transformers that dtrun lacks, each with an answer that says what dtrun has
 * instead. Names that mean exactly the same as an option of dtrun are in that option's row (cli/options.c,
 * request/fields.c). lua/cli/README.md lists all of them; tests/cli/foreign.sh compares the lists. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stddef.h>

typedef struct {
  const char *names; /* separated by blanks */
  const char *answer;
} foreign_option;

/* Returns the option whose name is arg[n], or NULL. */
const foreign_option *foreign_find(const char *arg, size_t n);

#endif
