/* A scripted pair, for tests of policies and programs. It needs no model files and does no arithmetic. */
#ifndef DT_DTRUN_FAKE_H
#define DT_DTRUN_FAKE_H

#include "dtrun.h"
#include "fake/rule.h"

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct {
  int vocab;         /* of all models */
  int context;       /* of the target */
  int draft_context; /* 0: the target's */
  int32_t eos;       /* the end-of-text id, below vocab; -1: none */
  /* The rules of each model. If no rule matches, the distribution is made from a hash of the whole text. */
  const dt_fake_rule *target, *draft;
  int n_target, n_draft;
  bool no_draft; /* a pair without a draft model */
  /* The target has `layers` layers with `experts` experts, of which a row chooses `chosen`; experts = 0: none. A row
   * keeps each expert of the previous token with probability `kept` (0 to 1), and otherwise takes one that depends on
   * its token. */
  int layers, experts, chosen;
  float kept;
  dt_fake_times target_times, draft_times;
  const dt_fake_delay *delays; /* [n_delays] copied */
  int n_delays;
  /* Prompts are computed in whole chunks of 16 rows, as on a GPU (of 512). Where no rule matches, distributions depend
   * on which of the rows before were computed so. */
  bool chunks;
} dt_fake_options;

/* Opens a scripted pair. Its text is the ids in decimal, each with a blank before it, and its dt_encode reads such
 * text. Rules are copied. */
dt_status dt_pair_open_fake(const dt_fake_options *options, dt_pair **out, dt_error *err);

#pragma GCC visibility pop

#endif
