/* The delta layers (dt_layer) of a checkpoint with the names of Qwen3.5: which layers they are, their sizes and their
 * tensors. */
#ifndef DT_DELTA_H
#define DT_DELTA_H

#include "model/checkpoint.h"

/* Reads the sizes of delta layers and which layers are delta layers: those that layer_types lists as linear_attention
 * or, without that key, all except every full_attention_interval-th. */
dt_status delta_read(const keys *k, config *c);

/* Finds the tensors of the delta layer f->layer. */
void delta_find(finder *f, const dt_shape *s, dt_layer *l);

#endif
