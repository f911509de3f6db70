/* The options of the command line. */
#ifndef CLI_H
#define CLI_H

#include "host.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
  const char *policy;  /* NULL: none named */
  const char *model;   /* the target, if it was named without its option; or NULL */
  const char *prompts; /* a file of many */
  const char *target, *draft, *draft2, *target_weights, *draft_weights, *draft_vocab, *head_layers, *cache_dtype,
      *activations, *backend;
  const char *costs; /* "table", "learn"; NULL: not given */
  const char *preset, *compare, *json, *trace;
  const char *grammar, *grammar_file, *schema, *schema_file, *regex;
  const char *system, *template;      /* of a chat */
  const char *host, *key, *port_file; /* of a server */
  int port;                           /* 1 more; 0: not said */
  int queue, timeout;                 /* 0: not said */
  int cache_ram;                      /* 1 more; 0: not said */
  int tokens;                         /* 0: not given */
  int context, threads, parallel, rounds;
  float policy_seconds; /* 0: any time */
  dt_sampling sampling; /* as requests and sessions take them: */
  dt_window window;
  dt_shifts shifts;      /* but for its grammar, and its biases: */
  const char **biases;   /* [n_biases] as typed */
  int logprobs;          /* 1 more than how many; 0: not said */
  int answers;           /* 0: not said */
  dtl_setting *settings; /* [n_settings] */
  const char **stop;     /* [n_stop] */
  const char **files;    /* [n_files] prompts in files */
  const char **texts;    /* [n_texts] prompts given as text */
  const char **common;   /* [n_common] arguments as typed that suit any policy */
  const char **corpus;   /* [n_corpus] files */
  const char **origins;  /* [n_origins] that pages of other sites come from */
  const char **served;   /* [n_served] names of the model for clients */
  int n_settings, n_stop, n_files, n_texts, n_common, n_corpus, n_biases, n_origins, n_served;
  bool ignore_eos, uncoupled, echo, chat, stats, color, quiet, verbose, explain;
  bool help, man, version, list;
} cli_options;

/* Reads the arguments after the program's name. The strings of *out are argv's (a --set is cut at its '='); its lists are
 * freed with cli_free, after a failure too. DT_EINPUT: a message that names the option. */
dt_status cli_parse(int argc, char **argv, cli_options *out, dt_error *err);
void cli_free(cli_options *options);

/* Whether this argument, in the place of a policy (folder: policies) or of a driver (scripts), is a model: a .gguf file by its name, a
 * folder with config.json, or a model's name that no file in that folder has. */
bool cli_is_model(const char *argument, const char *folder);

/* Options that /set may change between answers: numbers, by any name of their option without its dashes. */
const char *cli_settable(int i); /* its first name; i = 0, 1, ..; NULL: there are no more */
bool cli_can_set(const char *name);
dt_status cli_set(cli_options *options, const char *name, const char *value,
                  dt_error *err); /* of a name that can be set */

#endif
