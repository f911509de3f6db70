/* A request's body, read: fields of OpenAI's completions and chats, of llama.cpp's and vLLM's servers, and dtrun's own.
 */
#ifndef SERVE_ASK_H
#define SERVE_ASK_H

#include "request/input.h"
#include "serve/refusal.h"

#include <cJSON.h>

enum { ASK_SECRETS = 4 };

/* What the server was started with; it does not change. */
typedef struct {
  dt_pair *pair;
  const dt_chat *chat;       /* the layout of conversations; NULL: */
  const char *no_chat;       /* why there is none */
  const dtl_policy *policy;  /* for requests that name none */
  dtl_request defaults;      /* of requests: options of sequences, memory, corpus */
  const char *const *models; /* [n_models] its names for clients */
  int n_models;
  refusal_secret secrets[ASK_SECRETS]; /* paths of this machine */
  int context;                         /* of a sequence */
  int vocab;                           /* of the target */
  long started;                        /* seconds since 1970 */
} ask_server;

#define ASK_TEXTS 128 /* most answers to one request, those to all its prompts together */

typedef struct {
  bool is_chat, stream, usage, echo, tells; /* usage: in a last chunk; tells: of its policy and statistics */
  bool cached;                              /* it takes rows of earlier prompts, and leaves its own */
  bool trace;                               /* of each iteration */
  bool whole;                               /* reasoning stays in the text, with its marks */
  bool no_tokens;                           /* only the prompt's log-probabilities are wanted */
  int n_prompts;
  struct ask_prompt {
    int32_t *ids;
    int n;
  } * prompts;
  const char *model; /* the name that it is answered under */
  request_input in;  /* options of the text: in.request.seq, in.request.answers */
  bool seeded;
  cJSON *body;     /* texts of `in` are its own */
  dtl_policy *own; /* it named a policy; NULL: the server's */
  bool has_source; /* it sent a policy's text */
} ask;

/* Reads a body. False: *why says what is wrong; free it all the same. */
bool ask_read(const ask_server *server, bool is_chat, const char *body, size_t len, ask *out, refusal *why);
void ask_free(ask *a);

/* The name of the model that clients call so; its first one, if it has no such name. */
const char *ask_model(const ask_server *server, const char *name);

/* The conversation of a request's `messages`, as text up to the beginning of the answer: malloc'd. */
bool ask_conversation(const ask_server *server, const cJSON *messages, char **text, size_t *len, refusal *why);

#endif
