/* The options of the command line. */
#ifndef CLI_H
#define CLI_H

#include "request/input.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
  const char *policy;  /* NULL: none named */
  const char *model;   /* the target, if it was named without its option; or NULL */
  request_input in;    /* fields of requests and of the pair */
  const char *prompts; /* a file of many */
  const char *preset, *compare, *json, *trace;
  const char *grammar_file, *schema_file;
  const char *system, *template;      /* of a chat */
  const char *host, *key, *port_file; /* of a server */
  int port, cache_ram;                /* -1: not given */
  int queue, timeout, rounds;         /* 0: not given */
  double policy_seconds;              /* 0: any time */
  dtl_setting *settings;              /* [n_settings] */
  const char **files;                 /* [n_files] prompts in files */
  const char **texts;                 /* [n_texts] prompts given as text */
  const char **common;                /* [n_common] arguments as typed that suit any policy */
  const char **corpus;                /* [n_corpus] files */
  const char **origins;               /* [n_origins] that pages of other sites come from */
  const char **served;                /* [n_served] names of the model for clients */
  int n_settings, n_files, n_texts, n_common, n_corpus, n_origins, n_served;
  bool chat, stats, color, quiet, verbose, explain;
  bool help, man, version, list;
} cli_options;

/* Reads the arguments after the program's name. The strings of *out are argv's (a --set is cut at its '='); its lists
 * are freed with cli_free, after a failure too. DT_EINPUT: a message that names the option. */
dt_status cli_parse(int argc, char **argv, cli_options *out, dt_error *err);
void cli_free(cli_options *options);

/* Whether this argument, in the place of a policy (folder: policies) or of a driver (scripts), is a model: a .gguf file
 * by its name, a folder with config.json, or a model's name that no file in that folder has. */
bool cli_is_model(const char *argument, const char *folder);

/* The field that /set may change between answers, by any name of its option without the dashes; NULL: none. */
const request_field *cli_settable(const char *name);

/* Whether an option was given, by a name of it. */
bool cli_given(const cli_options *options, const char *name);

#endif
