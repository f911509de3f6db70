/* Splits the answer of a chat, while it is generated, into reasoning, content and calls of tools. */
#ifndef SERVE_ANSWER_PARTS_H
#define SERVE_ANSWER_PARTS_H

#include "serve/ask.h"

typedef enum {
  PART_CONTENT,
  PART_REASONING,
  PART_CALL,      /* a call begins; bytes: the name of its tool */
  PART_ARGUMENTS, /* the next bytes of its arguments */
  PART_END,       /* the call is complete */
  PART_BROKEN     /* the call is not complete and will not be; bytes: all of its text */
} part_kind;

/* Receives the next part. call: the number of the call, from 0. */
typedef void (*parts_on_part)(void *user, part_kind kind, int call, const char *bytes, size_t len);

typedef struct answer_parts answer_parts;

/* Opens a splitter for an answer of a chat. False: out of memory. */
bool parts_open(const ask_server *server, const ask *asked, answer_parts **out);
void parts_close(answer_parts *s); /* NULL is allowed */

void parts_add(answer_parts *s, const char *bytes, size_t len, parts_on_part on_part, void *user);
void parts_end(answer_parts *s, parts_on_part on_part, void *user); /* passes on what was held back */

int parts_calls(const answer_parts *s); /* the number of complete calls so far */

/* Returns how many tokens of an answer are reasoning, its marks included; -1: out of memory. */
int parts_reasoning_tokens(const ask_server *server, const ask *asked, const dtl_result *r);

#endif
