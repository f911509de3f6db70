/* A job: the prompts, policies, models and costs of one command line. */
#ifndef JOB_H
#define JOB_H

#include "cli/cli.h"
#include "cli/prompts.h"

#define SLOTS 8 /* default of --parallel */

typedef struct {
  cli_options *options;
  prompt_list prompts;
  bool several;               /* there is more than one prompt, or a file of prompts: results are reported as a batch */
  int slots;                  /* sequences at once; 0: `several` is false */
  dtl_policy *policy, *other; /* other: the policy of --compare, or NULL */
  dt_pair *pair;
  const char *target, *draft;   /* the pair's */
  bool found;                   /* the draft was searched for, not named */
  dt_chat *chat;                /* NULL: prompts are texts to continue, not questions */
  dt_reasoning_state reasoning; /* of a chat */
  const char *tools;            /* of a chat: a JSON list of functions; NULL: none */
  const char *call_grammar;     /* of the next answer: it constrains calls of tools; NULL: nothing does */
  int answers;                  /* number of answers to each prompt */
  dtl_trace *trace;             /* or NULL */
  dtl_costs costs;              /* with --costs table, if a policy uses costs */
  dtl_learned *learned;         /* NULL: with --costs table */
  dtl_memory *memory;
  dtl_corpus *corpus; /* NULL: none given */
} job;

/* Each of these checks as much as possible before anything runs, prints what is wrong, and returns an exit status. A
 * missing policy or prompt is replaced by its default. Call job_close after a failure too. */
int job_open(cli_options *options, job *out);
int job_open_chat(cli_options *options, job *out);   /* for a conversation, without prompts; it loads any draft model */
int job_open_server(cli_options *options, job *out); /* the same, with the costs of passes */
int job_costs(job *j); /* gets the costs if a policy uses them: measured with --costs table, otherwise learned */
int job_close(job *j); /* returns an exit status too, since writing the trace may fail */

/* Returns the options with which to open the command line's policy again, for other settings. The preset DTL_TUNED
 * needs a pair; without a pair the policy opens with its defaults, to find out what it uses. */
dtl_policy_options job_policy(const cli_options *options, const dt_pair *pair);

/* Writes a conversation in the job's chat template, with its variables, as a prompt. *ids is malloc'd; *reasoning
 * as in dtl_encode_chat. */
dt_status job_conversation(const job *j, const dtl_message *messages, int n, int32_t **ids, int *n_ids,
                           dt_reasoning_state *reasoning, dt_error *err);

int job_texts(const job *j); /* total number of answers to all prompts */

/* Returns the request that all runs of the job share, without prompts. */
dtl_request job_request(const job *j);

#endif
