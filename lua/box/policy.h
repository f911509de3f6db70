/* A policy opened: its box with the object in it, and what is known of it outside Lua. */
#ifndef DTL_POLICY_H
#define DTL_POLICY_H

#include "box/box.h"

/* Places on the main thread's stack that stay taken. */
enum { POLICY_OBJECT = 1, POLICY_HOST, POLICY_SEQ, POLICY_COSTS, POLICY_MEMORY, POLICY_CORPUS };

struct dtl_policy {
  dtl_box box;
  dtl_policy_info info;
  char *params_json; /* the parameters as given, a JSON object */
  uint64_t seed;
  bool used;    /* it has served its sequence */
  char **owned; /* every string and array of info */
  int n_owned;
};

#endif
