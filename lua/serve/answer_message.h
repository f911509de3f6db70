/* The message of a chat's answer: its text, reasoning and calls of tools. */
#ifndef SERVE_ANSWER_MESSAGE_H
#define SERVE_ANSWER_MESSAGE_H

#include "serve/answer.h"

/* Texts, not JSON: their bytes may be any (bytes is NULL if there are none). */
typedef struct {
  json_text name, arguments; /* arguments: a JSON object as text */
} message_call;

typedef struct {
  json_text content, reasoning;
  message_call *calls; /* [n_calls], and one more while `open` */
  int n_calls;
  bool open;   /* a call is not complete */
  bool failed; /* out of memory */
} answer_message;

/* Reads a whole answer. False: out of memory. Free *out with message_free in both cases. */
bool message_read(const answer_head *head, const dtl_result *r, answer_message *out);

/* Adds a part of a stream to a message, which begins as zeros. */
void message_add(answer_message *m, part_kind kind, const char *bytes, size_t len);
void message_free(answer_message *m);

#endif
