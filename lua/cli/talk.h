/* The state of a conversation, and what its commands do to it. */
#ifndef TALK_H
#define TALK_H

#include "cli/job.h"
#include "cli/line.h"

typedef struct {
  cli_options options;    /* the command line's, and what /set and /system made of them */
  job j;                  /* whose options these are */
  dtl_policy_options how; /* of its policy */
  char *policy;           /* what /policy named; NULL: the command line's */
  char *system;           /* what /system gave; NULL: the command line's */
  dtl_setting *settings;  /* [n_settings] of the policy, what /set gave among them: malloc'd texts */
  int n_settings;
  dt_session *session;
  dt_message *turns; /* [n] question, answer, ..: malloc'd texts */
  int n;
  line_source *lines;
  bool terminal, stats, over;
  int status;                                  /* to end with */
  long answers, tokens, iterations, committed; /* of the whole conversation */
  double ms;
} talk;

/* Each tells what is wrong, and then leaves all as it was. */
void talk_ask(talk *t, const char *question, size_t len); /* and answers */
void talk_again(talk *t);                                 /* another answer to the last question */
void talk_forget(talk *t);
void talk_system(talk *t, const char *text);
void talk_policy(talk *t, const char *name);
void talk_set(talk *t, const char *name, const char *value); /* of sampling, or of the policy */
void talk_list_settings(const talk *t);

void talk_close(talk *t);

/* A line that begins with '/': its command is done, or the one that was meant is named. */
void chat_command(talk *t, char *line);

#endif
