/* A scripted pair, for tests of policies and programs: no files, no arithmetic. */
#ifndef DT_DTRUN_FAKE_H
#define DT_DTRUN_FAKE_H

#include "dtrun.h"
#include "fake/rule.h"

#pragma GCC visibility push(default) /* libdtrun.so exports these names and hides all others */

typedef struct {
  int vocab;         /* of all models */
  int context;       /* of the target */
  int draft_context; /* 0: as the target's */
  int32_t eos;       /* -1: none; below vocab */
  const dt_fake_rule *target, *draft,
      *draft2; /* where no rule matches, a distribution made from a hash of the whole text */
  int n_target, n_draft, n_draft2;
  bool no_draft;   /* a pair without a draft model */
  bool two_drafts; /* a pair with two, the second of which guesses right less often */
  /* The target has `layers` layers of `experts`, of which a row takes `chosen`; experts 0: none. It keeps each expert
   * of the token before with the chance `kept`, from 0 to 1, and else takes one that depends on its token. */
  int layers, experts, chosen;
  float kept;
  dt_fake_times target_times, draft_times; /* of both drafts */
  const dt_fake_delay *delays;             /* [n_delays] copied */
  int n_delays;
} dt_fake_options;

/* A pair whose text is its ids in decimal with a blank before each, and whose dt_encode reads such text. Rules are
 * copied. */
dt_status dt_pair_open_fake(const dt_fake_options *options, dt_pair **out, dt_error *err);

#pragma GCC visibility pop

#endif
