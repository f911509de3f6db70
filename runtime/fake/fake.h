/* A scripted backend for tests: its models are tables of distributions, and its caches store only the token of each
 * slot. The text of a row is read back from the slots that it names, so a wrong slot, prefix, path or move changes the
 * output. */
#ifndef DT_FAKE_H
#define DT_FAKE_H

#include "backend/backend.h"
#include "fake/expert_routes.h"
#include "fake/rule.h"

enum { FAKE_CHUNK = 16 };

extern const dt_backend_ops dt_fake_ops;         /* its `upload` fails: use fake_upload */
extern const dt_backend_ops dt_fake_chunked_ops; /* the same, for a backend with fake_compute_in_chunks */

typedef struct {
  int vocab;
  const dt_fake_rule *rules; /* [n_rules] copied */
  int n_rules;
  fake_routes routes;
  dt_fake_times times;
  bool drafts; /* a draft; where no rule matches, its distribution is similar to the target's but not equal */
} fake_model;

/* Sets delays for the passes of all models; the list is copied. */
dt_status fake_delay(dt_backend *backend, const dt_fake_delay *delays, int n, dt_error *err);

/* Prompts are computed in chunks of FAKE_CHUNK rows. */
void fake_compute_in_chunks(dt_backend *backend);

/* Makes a model; the rules are copied. */
dt_status fake_upload(dt_backend *backend, const fake_model *model, dt_weights **out, dt_error *err);

#endif
