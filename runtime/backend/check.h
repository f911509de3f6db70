/* Checks of arguments for every backend: a model's shapes, a pass's rows and results, slots. */
#ifndef DT_CHECK_H
#define DT_CHECK_H

#include "backend/backend.h"

enum { CHECK_TOP = 32 }; /* most candidates per row */

/* The bounds of rows and slots in one cache of one model. */
typedef struct {
  int vocab, context, sequences, slots;
} dt_limits;

dt_status check_model(const dt_model_desc *desc, dt_error *err);
/* DT_EINPUT where the model or head has a part that `backend`, which computes plain layers only, lacks. */
dt_status check_plain(const dt_model_desc *desc, const char *backend, dt_error *err);
dt_status check_head(const dt_head_desc *head, const dt_shape *target, dt_error *err);
dt_status check_pass(const dt_rows *rows, const dt_out *out, dt_limits limits, dt_error *err); /* out may be NULL */
/* A draft head's pass: each row has a feature to read, in the target's cache (`given`: its bounds) or, where `given` is
 * NULL, in the head's own. distances: of a Medusa head; 0: another head. */
dt_status check_features(const dt_rows *rows, int distances, const dt_limits *given, dt_error *err);
/* The same of a cross-attention head's pass, whose rows see the target's cache. */
dt_status check_reading(const dt_rows *rows, const dt_limits *given, dt_error *err);
dt_status check_slots(const char *what, int sequence, const int32_t *slot, int n, dt_limits limits, dt_error *err);

#endif
