/* Prompts of fill-in-the-middle: the text between two others is wanted. */
#ifndef SERVE_INFILL_PROMPT_H
#define SERVE_INFILL_PROMPT_H

#include "serve/ask.h"

typedef struct {
  const char *prefix, *suffix; /* the texts before and after the gap */
  const char *begun;           /* how the text in the gap begins; NULL: the model begins it */
  const cJSON *extra;          /* a checked list of other files, {text, filename}; NULL: none */
} infill_texts;

/* Encodes the texts in the order prefix, suffix, middle. What they spell never becomes a control token. *ids is
 * malloc'd; the caller frees it. False: *why says that the vocabulary has no tokens for this (after `where`, what asks
 * for it), or that memory ran out. */
bool infill_encode(const ask_server *server, const infill_texts *texts, const char *where, int32_t **ids, int *n,
                   refusal *why);

#endif
