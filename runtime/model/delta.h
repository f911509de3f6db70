/* Delta layers of a checkpoint (dt_layer): which layers they are, their numbers and tensors, as Qwen3.5 names them. */
#ifndef DT_DELTA_H
#define DT_DELTA_H

#include "model/checkpoint.h"

/* The numbers of delta layers, and which layers are such: those that layer_types lists as linear_attention, else all
 * but each full_attention_interval-th. */
dt_status delta_read(const keys *k, config *c);

void delta_find(finder *f, const dt_shape *s, dt_layer *l);

#endif
