/* What the readers of a request's fields share: ask.c has the table of fields, ask_grammar.c those of grammars. */
#ifndef SERVE_ASK_READING_H
#define SERVE_ASK_READING_H

#include "serve/ask.h"

/* What the reader of a field needs. */
typedef struct {
  const ask_server *server;
  ask *a;
  refusal *why;
  const char *name; /* the field's name, or */
  char place[64];   /* that of a part of it, such as prompt[1] */
  raw_json body;
  const request_field *field; /* NULL: the member is not in that table */
  bool formatted;             /* the grammar is response_format's */
  bool greedy;                /* top_p is 0, which leaves only the likeliest token */
  const cJSON *logprobs;      /* a chat's member logprobs, true or false; NULL: not given */
} reading;

/* These return false, after they have set *r->why: that the field should be `expected`, of a failure, that memory is
 * out. ask_done returns whether a step succeeded. */
bool ask_wrong(reading *r, const char *expected);
bool ask_failed(reading *r, const dt_error *err);
bool ask_starved(reading *r);
bool ask_done(reading *r, dt_status status, const dt_error *err);

/* Grammars and schemas, of which a request has at most one, under the names of llama.cpp, OpenAI and vLLM. */
bool ask_read_grammar(reading *r, const cJSON *v);
bool ask_read_schema(reading *r, const cJSON *v);
bool ask_read_format(reading *r, const cJSON *v);
bool ask_read_json(reading *r, const cJSON *v);
bool ask_read_regex(reading *r, const cJSON *v);
bool ask_read_choice(reading *r, const cJSON *v);
bool ask_read_structured(reading *r, const cJSON *v);

#endif
