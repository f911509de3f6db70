/* A scripted backend for tests: its models are tables of distributions, and its caches store only the token of each
 * slot. The text of a row is read back from the slots that it names, so a wrong slot, prefix, path or move changes the
 * output. */
#ifndef DT_FAKE_H
#define DT_FAKE_H

#include "backend/backend.h"
#include "fake/expert_routes.h"
#include "fake/rule.h"

extern const dt_backend_ops dt_fake_ops; /* its `upload` fails: use fake_upload */

typedef struct {
  int vocab;
  const dt_fake_rule *rules; /* [n_rules] copied */
  int n_rules;
  fake_routes routes;
  dt_fake_times times;
  /* 0: a target; 1 and 2: its first and second draft. Where no rule matches, their distributions are similar but not
   * equal. */
  int draft;
} fake_model;

/* Sets delays for the passes of all models; the list is copied. */
dt_status fake_delay(dt_backend *backend, const dt_fake_delay *delays, int n, dt_error *err);

/* Makes a model; the rules are copied. */
dt_status fake_upload(dt_backend *backend, const fake_model *model, dt_weights **out, dt_error *err);

#endif
