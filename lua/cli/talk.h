/* The state of a conversation, and its commands. */
#ifndef TALK_H
#define TALK_H

#include "cli/chat_tools.h"

typedef struct {
  cli_options *options;   /* the command line's, changed by /set and /system */
  job j;                  /* uses `options` */
  dtl_policy_options how; /* the options to open its policy */
  char *policy;           /* the name given with /policy; NULL: the command line's */
  char *system;           /* the text given with /system; NULL: the command line's */
  dtl_setting *settings;  /* [n_settings] settings of the policy, those of /set included; malloc'd texts */
  int n_settings;
  dt_session *session;
  dtl_message *turns; /* [n] questions, answers, results of calls; malloc'd texts */
  int n;
  chat_tools tools;
  dt_called calls; /* of the last answer */
  line_source *lines;
  bool terminal, stats, over;
  int status;                                  /* exit status */
  long answers, tokens, iterations, committed; /* totals of the whole conversation */
  double ms;
} talk;

/* If one of these fails, it prints why and changes nothing. */
void talk_ask(talk *t, const char *question, size_t len); /* asks a question and shows the answer */
void talk_again(talk *t);                                 /* gives another answer to the last question */
void talk_forget(talk *t);
void talk_system(talk *t, const char *text);
void talk_policy(talk *t, const char *name);
void talk_set(talk *t, const char *name, const char *value); /* an option, or a parameter of the policy */
void talk_list_settings(const talk *t);

void talk_close(talk *t);

/* Runs the command of a line that begins with '/'. For an unknown command it names the one that resembles it most. */
void chat_command(talk *t, char *line);

#endif
