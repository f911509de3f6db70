/* Options of llama.cpp, ollama, vLLM and transformers that dtrun lacks: an answer says what it has instead. Names that
 * mean exactly an option of dtrun are in its row (cli/options.c, request/fields.c). lua/cli/README.md shows all;
 * tests/cli/foreign.sh compares. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stddef.h>

typedef struct {
  const char *names; /* with blanks between */
  const char *answer;
} foreign_option;

/* The option with the name in the n characters of arg, or NULL. */
const foreign_option *foreign_find(const char *arg, size_t n);

#endif
