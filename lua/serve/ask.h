/* Reads the body of a request: the fields of OpenAI's completions and chats, of the servers of llama.cpp and vLLM, and
 * dtrun's own. */
#ifndef SERVE_ASK_H
#define SERVE_ASK_H

#include "request/input.h"
#include "serve/lines.h"
#include "serve/refusal.h"
#include "serve/tools.h"

#include <cJSON.h>

enum { ASK_SECRETS = 3 };

/* What the server was started with. It does not change. */
typedef struct {
  dt_pair *pair;
  const dt_chat *chat;         /* the chat template; NULL: there is none, */
  const char *no_chat;         /* for this reason */
  const dt_call_format *calls; /* how the template writes calls of tools; NULL without a template */
  const char *settings[2];     /* [n_settings] objects of its variables, of all requests */
  int n_settings;
  bool template_raw;         /* messages may contain control tokens */
  const dtl_policy *policy;  /* for requests that name no policy */
  dtl_request defaults;      /* defaults of requests: options of sequences, memory, corpus */
  const char *const *models; /* [n_models] names of the model for clients */
  int n_models;
  refusal_secret secrets[ASK_SECRETS]; /* paths that messages to clients must not show */
  int context;                         /* context length of a sequence */
  int vocab;                           /* vocabulary size of the target */
  long started;                        /* start time in seconds since 1970 */
} ask_server;

typedef struct api_form api_form; /* see api.h */

#define ASK_TEXTS 128 /* maximum number of answers to a request, for all its prompts together */

typedef struct {
  const api_form *api;
  bool is_chat, stream, usage, echo,
      tells;                    /* usage: send it in a last chunk; tells: report the policy and its statistics */
  bool cached;                  /* use the prefix cache and add to it */
  bool trace;                   /* send a trace of each iteration */
  bool whole;                   /* leave reasoning in the text, with its marks */
  dt_reasoning_state reasoning; /* of a chat */
  request_tools tools;          /* of a chat */
  line_limits lines;            /* of a completion */
  bool no_tokens;               /* generate nothing; only the prompt's log-probabilities are wanted */
  int n_prompts;
  struct ask_prompt {
    int32_t *ids;
    int n;
  } * prompts;
  const char *model; /* the model's name in the answer */
  request_input in;  /* options of the text: in.request.seq, in.request.answers */
  bool seeded;
  cJSON *given;    /* the client's body, */
  cJSON *body;     /* and in OpenAI's form: it owns the texts that `in` points to */
  dtl_policy *own; /* the policy that the request names; NULL: the server's */
  bool has_source; /* the request contains a policy's text */
} ask;

/* Reads a body into *out. False: *why says what is wrong. Free *out in both cases. */
bool ask_read(const ask_server *server, const api_form *api, const char *body, size_t len, ask *out, refusal *why);
void ask_free(ask *a);

/* Returns the model's name that equals `name`, with or without ":latest" at its end, or its first name. */
const char *ask_model(const ask_server *server, const char *name);

#endif
