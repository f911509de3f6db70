/* A scripted backend: its models are tables of distributions, its cache holds the token of each slot and nothing else.
 * A row's text is read back from the slots it names, so a wrong slot, prefix, path or move shows in the output. */
#ifndef DT_FAKE_H
#define DT_FAKE_H

#include "backend/backend.h"
#include "fake/expert_routes.h"
#include "fake/rule.h"

extern const dt_backend_ops dt_fake_ops; /* its upload slot fails: use fake_upload */

typedef struct {
  int vocab;
  const dt_fake_rule *rules; /* [n_rules] copied */
  int n_rules;
  fake_routes routes;
  dt_fake_times times;
  /* 0: a target; its first draft, 1, and its second, 2: where no rule matches, they answer alike but not equally. */
  int draft;
} fake_model;

/* Delays of all models' passes; copied. */
dt_status fake_delay(dt_backend *backend, const dt_fake_delay *delays, int n, dt_error *err);

dt_status fake_upload(dt_backend *backend, const fake_model *model, dt_weights **out, dt_error *err);

#endif
