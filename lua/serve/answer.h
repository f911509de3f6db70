/* What the forms of answers (api.h) have in common. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include "files/json_text.h"
#include "serve/answer_parts.h"
#include "serve/ask.h"

typedef struct {
  const ask_server *server;
  const ask *ask;
  char id[40];
  long created;
  void *state; /* of the API, for a stream: see api.h */
} answer_head;

/* Log-probabilities of tokens that have not been sent in a chunk yet. */
typedef struct {
  int n, room;
  int32_t *ids;
  dtl_logprob *list; /* [n] its arrays point into `top_id` and `top_logp`: DT_LOGPROBS entries for each token */
  int32_t *top_id;
  float *top_logp;
} answer_logprobs;

/* Adds copies of n log-probabilities; false: out of memory. */
bool answer_keep(answer_logprobs *kept, const int32_t *ids, const dtl_logprob *list, int n);
void answer_drop(answer_logprobs *kept); /* frees all; zeros are allowed */

/* Position in the text for the log-probabilities: the number of characters that have been counted, and the number of
 * bytes of the last one that are still to come. */
typedef struct {
  size_t characters;
  int left;
} answer_offset;

#define ANSWER_TRACE (32u << 20) /* maximum bytes of a trace not yet read; further iterations are left out */

/* Returns whether a line of a trace of `len` bytes can be added to `waiting` bytes. */
bool answer_has_room(size_t waiting, size_t len);

/* Returns whether an answer ended by itself, not at a limit. */
bool answer_is_complete(const dtl_result *r);

/* Writes the id of a call, which differs from those of other calls. Some templates take only ids of nine letters and
 * digits. */
enum { ANSWER_CALL_ID = 10 };
void answer_call_id(char id[ANSWER_CALL_ID], const answer_head *head, int index, int call);

/* Writes JSON with a printf format, whose texts must not need escapes. */
void answer_put(json_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_bytes(json_text *out, const char *bytes, size_t len); /* writes bytes as a list of numbers */
/* Writes JSON as it is and then a text in quotes; NULL is written as an empty text. */
void answer_text(json_text *out, const char *before, const char *text);
void answer_json(json_text *out, const char *before, const json_text *text); /* the same with bytes that may be any */

/* Writes ,"dtrun":{...}, the result of a text, if the request asks for it. trace: NULL for a stream, which has sent it
 * line by line. */
void answer_statistics(json_text *out, const answer_head *head, const dtl_result *r, const json_text *trace);

/* Writes "timings" of n texts as llama.cpp's server does, with a comma before. */
void answer_timings(json_text *out, const dtl_result *results, int n);

#endif
