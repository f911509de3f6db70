/* Options of llama.cpp, ollama, vLLM and transformers: the dtrun option that means the same, or an answer that explains the
 * difference. lua/cli/README.md shows the table; tests/cli/foreign.sh keeps the two equal. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  const char *names; /* with blanks between */
  const char *ours;  /* the option that means exactly this, or NULL: */
  const char *answer;
} foreign_option;

/* Whether `arg`, of n characters up to its end or its '=', is that name; '_' is as good as '-' within it. */
bool option_is_called(const char *name, size_t name_length, const char *arg, size_t n);

/* The option with the name in the n characters of arg, or NULL. */
const foreign_option *foreign_find(const char *arg, size_t n);

#endif
