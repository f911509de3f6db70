/* What Llama and related families have in common, for those with a file of their own. */
#ifndef DT_LLAMA_H
#define DT_LLAMA_H

#include "model/family.h"

/* Defaults of keys that a file may lack, and spellings of keys. 0 and NULL stand for Llama's. */
typedef struct {
  int head_dim;
  double eps, base, part; /* part: the share of a head that rotates, from its beginning */
  bool tied;
  bool no_mlp; /* no layer has an MLP whose width is the usual key */
  const char *act_key, *act;
} llama_defaults;

/* Reads all keys except those of heads, the MLP's width, and rotations. */
dt_status llama_read_basics(const keys *k, const llama_defaults *usual, config *c);

/* Reads the keys of all models of these families except the newest. */
dt_status llama_read(const keys *k, const llama_defaults *usual, config *c);

/* Finds the tensors of layer f->layer. */
void llama_find_layer(finder *f, const config *c, dt_layer *l);

/* Finds all tensors that the configuration asks for, as `find` of a family does. The layers must already have their
 * sizes. */
void llama_find(finder *f, const config *c, dt_model_desc *d, dt_layer *layers);

#endif
