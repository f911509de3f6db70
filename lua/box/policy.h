/* A policy: its texts, parameters and description. Nothing in it changes after dtl_policy_open. */
#ifndef DTL_POLICY_H
#define DTL_POLICY_H

#include "box/box.h"
#include "measure/preset.h"

#define POLICY_TEXT                                                                                                    \
  (64u << 10) /* maximum bytes of all its files: compiling may take the square of a text, and is not watched */

struct dtl_policy {
  dtl_policy_info info;
  char *params_json; /* the parameters that were set, a JSON object */
  char *text;        /* [len] the text of its file */
  size_t len;
  bool has_folder; /* it may require files next to its own */
  box_modules modules;
  const char *preset; /* or NULL */
  preset tuned;       /* the parameters of the preset, if it is DTL_TUNED */
  dtl_setting *settings;
  int n_settings;
  double seconds; /* limit of all calls into one object; 0: none */
  double call_ms; /* limit of each call */
  int init_times; /* init may take this many times call_ms, and that many times the instructions */
  bool quiet;     /* its print writes nothing */
  char **owned;   /* every string and array of info, preset and settings */
  int n_owned;
};

#endif
