/* Answers as JSON: whole ones, and the chunks of streams, as OpenAI's clients read them. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include "files/json_text.h"
#include "serve/ask.h"

typedef struct {
  const ask_server *server;
  const ask *ask;
  char id[40];
  long created;
} answer_head;

/* Log-probabilities of tokens that no chunk has told yet. */
typedef struct {
  int n, room;
  int32_t *ids;
  dtl_logprob *list; /* its arrays point into `top_id` and `top_logp`, DT_LOGPROBS for each */
  int32_t *top_id;
  float *top_logp;
} answer_logprobs;

/* False: out of memory. */
bool answer_keep(answer_logprobs *kept, const int32_t *ids, const dtl_logprob *list, int n);
void answer_drop(answer_logprobs *kept); /* frees it; zeros are allowed */

/* How many characters log-probabilities were given of, and how many bytes of the last one are still to come. */
typedef struct {
  size_t characters;
  int left;
} answer_offset;

#define ANSWER_TRACE (32u << 20) /* most bytes of a trace that nobody has read: iterations beyond are left out */

/* Whether a trace's line of `len` bytes has room behind `waiting` bytes. */
bool answer_has_room(size_t waiting, size_t len);

/* Opens *out for an answer whose reasoning is reported apart; NULL: for any other. False: out of memory. */
bool answer_reasoning(const answer_head *head, dt_reasoning **out);

/* Chunks of the text `index`, as events. */
void answer_begins(json_text *out, const answer_head *head, int index);
void answer_piece(json_text *out, const answer_head *head, int index, bool reasoning, const char *text, size_t len,
                  answer_logprobs *kept, answer_offset *offset);
void answer_traced(json_text *out, const answer_head *head, int index, const char *line);
void answer_ends(json_text *out, const answer_head *head, int index, const dtl_result *r, answer_logprobs *kept,
                 answer_offset *offset);
/* The end of a stream of n texts: usage, if it was asked for, and the last event. */
void answer_closes(json_text *out, const answer_head *head, const dtl_result *results, int n);

/* The whole answer: n = prompts * answers results. traces: [n] of each the lines of its trace, with commas between. */
void answer_whole(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces, int n);

void answer_refusal(json_text *out, const refusal *why);

/* Raw JSON by a format without texts of others. */
void answer_put(json_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_bytes(json_text *out, const char *bytes, size_t len); /* as a list of numbers */
/* Raw JSON, and a text behind it, in quotes; NULL is an empty one. */
void answer_text(json_text *out, const char *before, const char *text);

#endif
