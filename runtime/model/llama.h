/* What Llama's relatives have in common, for those with a file of their own. */
#ifndef DT_LLAMA_H
#define DT_LLAMA_H

#include "model/family.h"

/* Defaults of keys that a file may lack, and spellings; 0 and NULL: Llama's. */
typedef struct {
  int head_dim;
  double eps, base, part; /* part: of a head, the first that rotates */
  bool tied;
  bool no_mlp; /* no layer has an MLP of the usual key's width */
  const char *act_key, *act;
} llama_defaults;

/* Reads all but heads, the MLP's width, and rotations. */
dt_status llama_read_basics(const keys *k, const llama_defaults *usual, config *c);

/* Reads the keys that all but the newest have. */
dt_status llama_read(const keys *k, const llama_defaults *usual, config *c);

/* Those of one layer, whose number is f->layer. */
void llama_find_layer(finder *f, const config *c, dt_layer *l);

/* Finds the tensors that the configuration speaks of; layers have their own sizes already. As in family. */
void llama_find(finder *f, const config *c, dt_model_desc *d, dt_layer *layers);

#endif
