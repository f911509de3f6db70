/* Experts in the place of a layer's MLP: their keys and their tensors, in all layouts of files. */
#ifndef DT_MODEL_EXPERTS_H
#define DT_MODEL_EXPERTS_H

#include "model/checkpoint.h"

/* Reads how many experts a layer has, how many of them a row takes, and their width, which is that of a dense layer
 * unless the keys say otherwise; c->shape has hidden and inter. Sets chosen_only (see dt_layer). `optional`: the model
 * may have none. */
dt_status experts_read(const keys *k, bool optional, config *c);

/* Finds the router and the experts of layer f->layer. Files have a tensor of each expert's matrix, or one of those of
 * all experts, gate and up perhaps together. */
void experts_find(finder *f, const config *c, const dt_shape *s, dt_layer *l);

#endif
