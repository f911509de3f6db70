/* A job: the prompts, policies, models and costs of one command line. */
#ifndef JOB_H
#define JOB_H

#include "cli/cli.h"
#include "cli/prompts.h"

#define SLOTS 8 /* default of --parallel */

typedef struct {
  cli_options *options;
  prompt_list prompts;
  bool several;               /* reported as a batch: more than one prompt, or a file of them */
  int slots;                  /* sequences at once; 0: not several */
  dtl_policy *policy, *other; /* other: of --compare, or NULL */
  dt_pair *pair;
  const char *target, *draft; /* the pair's */
  bool found;                 /* the draft was searched for, not named */
  dt_chat *chat;              /* NULL: prompts are texts, not questions */
  int answers;                /* to each prompt */
  dtl_trace *trace;           /* or NULL */
  dtl_costs costs;            /* with --costs table, if a policy uses costs */
  dtl_learned *learned;       /* NULL: with --costs table */
  dtl_memory *memory;
  dtl_corpus *corpus; /* NULL: none given */
} job;

/* Each checks as much as possible before anything runs, prints a mistake, and returns an exit status. Defaults stand
 * for a missing policy and prompt. Call job_close after a failure too. */
int job_open(cli_options *options, job *out);
int job_open_chat(cli_options *options, job *out); /* without prompts, for a conversation; any draft model is loaded */
int job_open_server(cli_options *options, job *out); /* the same, and what passes cost */
int job_costs(job *j); /* costs, if a policy uses them: measured with --costs table, else learned */
int job_close(job *j); /* returns an exit status too: writing the trace may fail */

/* The options to open the command line's policy again under other settings. The preset DTL_TUNED needs a pair: without
 * one, the policy opens with its defaults, to tell what it uses. */
dtl_policy_options job_policy(const cli_options *options, const dt_pair *pair);

/* The conversation so far (turns, n as in dt_chat_text) with the job's system text. *text is malloc'd. */
dt_status job_conversation(const job *j, const dt_message *turns, int n, char **text, size_t *len, dt_error *err);

int job_texts(const job *j); /* answers to all prompts */

/* The request that all runs of the job share; its prompts are not set. */
dtl_request job_request(const job *j);

#endif
