/* The options of the command line. */
#ifndef CLI_H
#define CLI_H

#include "request/input.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
  const char *policy;  /* NULL: not named */
  const char *model;   /* the target, if it was named without -m; or NULL */
  request_input in;    /* fields of requests and of the pair */
  const char *prompts; /* a file with one prompt per line */
  const char *preset, *compare, *json, *trace;
  const char *grammar_file, *schema_file;
  const char *system, *template;      /* of a chat; template: the name of a built-in one, or a file */
  const char *think;                  /* on, off or auto; NULL: not given */
  const char *tools, *tool_command;   /* of a chat: a file; a program */
  char *variables;                    /* a JSON object: variables of the template; NULL: none */
  const char *host, *key, *port_file; /* of a server */
  int port, cache_ram;                /* -1: not given */
  int queue, timeout, rounds;         /* 0: not given */
  double policy_seconds;              /* 0: no limit */
  dtl_setting *settings;              /* [n_settings] */
  const char **files;                 /* [n_files] prompts in files */
  const char **texts;                 /* [n_texts] prompts given as text */
  const char *program;                /* its name, as typed; NULL in dtrun-serve */
  const char **common;                /* [n_common] arguments, as typed, that also make sense with another policy */
  const char **corpus;                /* [n_corpus] files */
  const char **origins;               /* [n_origins] origins whose web pages may use the server */
  const char **served;                /* [n_served] names of the model for clients */
  int n_settings, n_files, n_texts, n_common, n_corpus, n_origins, n_served;
  bool chat, template_raw, stats, color, quiet, verbose, explain;
  bool help, man, version, list;
} cli_options;

/* Reads the arguments after the program's name into *out. Its strings point into argv (a --set argument is split at its
 * '='). Free its lists with cli_free, after a failure too. DT_EINPUT: the message names the option. */
dt_status cli_parse(int argc, char **argv, cli_options *out, dt_error *err);
void cli_free(cli_options *options);

/* Returns whether an argument is a model although it is where a policy (folder: policies) or a driver (scripts) is
 * expected: the name of a .gguf file, a folder with config.json, or a model's name that no file in that folder has. */
bool cli_is_model(const char *argument, const char *folder);

/* Returns the field that /set can change, by any name of its option without the dashes; NULL: there is none. */
const request_field *cli_settable(const char *name);

/* Returns whether the option with this name was given. */
bool cli_given(const cli_options *options, const char *name);

#endif
