/* An API: how the bodies of a route's requests are read and its answers written. OpenAI's completions and chats are in
 * openai.c. Any other API is a file that turns its bodies into theirs and writes answers in its own form. */
#ifndef SERVE_API_H
#define SERVE_API_H

#include "serve/answer.h"
#include "serve/others.h"

#define API_EVENTS "text/event-stream"
#define API_PING ": ping\n\n" /* a comment, in a stream of events */

struct api_form {
  const char *id; /* the beginning of the ids of its answers */
  unsigned where; /* whose fields its bodies have: IN_TEXT or IN_CHAT, unless `translate` says so */
  /* Turns a body into one of OpenAI's, malloc'd: that of a chat, or of a completion (*where). False: *why says what is
   * wrong. NULL: bodies are OpenAI's. */
  bool (*translate)(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                    refusal *why);
  /* [n_names] names of fields in messages about the translated body, and the names that clients know. */
  const char *const (*names)[2];
  int n_names;

  bool primes;             /* max_tokens may be 0: the prompt is only computed, for the prefix cache */
  const char *stream_type; /* the content type of its streams */
  const char *ping;        /* is sent while a stream is silent; NULL: nothing may be sent */
  /* Opens the state of a stream, head->state. False: out of memory. Both may be NULL: there is none. */
  bool (*open)(answer_head *head);
  void (*close)(answer_head *head);
  /* Write the beginning of text `index` in a stream, a piece of it, a line of its trace, and its end, after a number of
   * calls of tools. */
  void (*begins)(json_text *out, const answer_head *head, int index);
  void (*piece)(json_text *out, const answer_head *head, int index, part_kind kind, int call, const char *text,
                size_t len, answer_logprobs *kept, answer_offset *offset);
  void (*traced)(json_text *out, const answer_head *head, int index, const char *line);
  void (*ends)(json_text *out, const answer_head *head, int index, const dtl_result *r, int calls,
               answer_logprobs *kept, answer_offset *offset);
  /* Writes the end of a stream of n texts, or a failure after its beginning. */
  void (*closes)(json_text *out, const answer_head *head, const dtl_result *results, int n);
  void (*fails)(json_text *out, const answer_head *head, const refusal *why);
  /* Writes a whole answer with n = prompts * answers results. traces: [n] the lines of each text's trace, separated by
   * commas. */
  void (*whole)(json_text *out, const answer_head *head, const dtl_result *results, const json_text *traces, int n);
  void (*refuses)(json_text *out, const refusal *why);
};

extern const api_form api_completions, api_chats;
extern const api_form api_responses;        /* responses.c */
extern const api_form api_anthropic;        /* anthropic.c, */
extern const api_form api_anthropic_counts; /* and for bodies whose tokens are counted */

void openai_refuse(json_text *out, const refusal *why); /* api_form.refuses of OpenAI's APIs */
extern const api_form api_infill;

#endif
