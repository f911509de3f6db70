/* Reads the keys and finds the tensors of layers with experts, in all layouts of files. */
#ifndef DT_MODEL_EXPERTS_H
#define DT_MODEL_EXPERTS_H

#include "model/checkpoint.h"

/* Reads how many experts a layer has, how many of them a row chooses, and their width, which is that of a dense layer
 * unless the keys say otherwise. c->shape must have hidden and inter. Sets chosen_only (see dt_layer). optional: the
 * model may have no experts. */
dt_status experts_read(const keys *k, bool optional, config *c);

/* Finds the router and the experts of layer f->layer. Files have one tensor for each matrix of each expert, or one
 * tensor for that matrix of all experts; gate and up may also be one tensor. */
void experts_find(finder *f, const config *c, const dt_shape *s, dt_layer *l);

#endif
