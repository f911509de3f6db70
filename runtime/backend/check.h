/* Checks of arguments for all backends: shapes of models, rows and results of passes, slots. */
#ifndef DT_CHECK_H
#define DT_CHECK_H

#include "backend/backend.h"

/* The limits for rows and slots in a cache of a model, and the maximum number of candidates per row. */
typedef struct {
  int vocab, context, sequences, slots, top;
} dt_limits;

/* Fails with DT_EINPUT unless all matrices have the shapes that the description demands. */
dt_status check_model(const dt_model_desc *desc, dt_error *err);
/* For a backend without some combinations of parts: fails with DT_EINPUT, naming `backend`, if the model or head has
 * one of them. */
dt_status check_plain(const dt_model_desc *desc, const char *backend, dt_error *err);
dt_status check_head(const dt_head_desc *head, const dt_shape *target, dt_error *err);

/* What a backend says of a layer of a loaded model. */
typedef struct {
  bool own, windowed; /* it has keys of its own; a window */
  int kv_heads, head_dim;
} keys_of_layer;
typedef keys_of_layer layer_describer(const dt_weights *, int layer);
/* Returns the target's layer whose keys a layer of a cross-attention head reads: the last one with keys of its own and,
 * as `windowed` says, a window or none. -1: there is no such layer. */
int layer_read(const dt_weights *target, int layers, bool windowed, layer_describer *);
/* Checks that the target has the keys that the layers of a cross-attention head read; DT_OK for other heads. */
dt_status check_layers_read(const dt_head_desc *head, const dt_weights *target, int layers, layer_describer *,
                            dt_error *err);

dt_status check_pass(const dt_rows *rows, const dt_out *out, dt_limits limits, dt_error *err); /* out may be NULL */
/* Checks that the pass gives the streams that this part of a model takes and leaves, and no others. */
dt_status check_streams(dt_part part, const dt_rows *rows, dt_error *err);
/* Checks that each row of a draft head's pass has a feature to read, in the target's cache (whose limits are `given`)
 * or, if `given` is NULL, in the head's own cache. `distances`: those of a Medusa head; 0 for other heads. */
dt_status check_features(const dt_rows *rows, int distances, const dt_limits *given, dt_error *err);
/* The same for the pass of a cross-attention head, whose rows see the target's cache. */
dt_status check_reading(const dt_rows *rows, const dt_limits *given, dt_error *err);
dt_status check_slots(const char *what, int sequence, const int32_t *slot, int n, dt_limits limits, dt_error *err);

#endif
