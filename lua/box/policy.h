/* A policy as it is written: its texts, its parameters, its description. Nothing in it changes once it is open. */
#ifndef DTL_POLICY_H
#define DTL_POLICY_H

#include "box/box.h"
#include "measure/preset.h"

#define POLICY_TEXT                                                                                                    \
  (64u << 10) /* bytes of all its files: compiling takes up to the square of a text, and is not watched */

struct dtl_policy {
  dtl_policy_info info;
  char *params_json; /* the parameters as given, a JSON object */
  char *text;        /* [len] of its file */
  size_t len;
  bool has_folder; /* it may require files beside its own */
  box_modules modules;
  const char *preset; /* or NULL */
  preset tuned;       /* in place of it, where it was found for a pair */
  dtl_setting *settings;
  int n_settings;
  double seconds; /* that all calls into an object of it may take; 0: any time */
  char **owned;   /* every string and array of info, preset, settings */
  int n_owned;
};

#endif
