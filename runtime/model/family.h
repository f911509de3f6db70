/* A family of models: how the keys and tensors of its checkpoints map to the canonical model. All code that is specific
 * to a family is in its own file; families.c lists them. */
#ifndef DT_FAMILY_H
#define DT_FAMILY_H

#include "model/checkpoint.h"

typedef struct {
  const char *model_type, *architecture; /* in config.json */
  const char *gguf;                      /* general.architecture of GGUF files; NULL: there are no such files */
  const char *takes;                     /* the keys for features that most families lack: see config_refuse_others */
  dt_status (*read)(const keys *k, config *c); /* fills a zeroed c */
  /* Sets views of all tensors in d and layers[c->shape.layers], which are zeroed. Failures are kept in f. */
  void (*find)(finder *f, const config *c, dt_model_desc *d, dt_layer *layers);
  /* Sets views of the tensors of the first MTP layer in a model's own files, and of those before and after it, in d and
   * layer. `layer` starts as a copy of the model's last layer, but never as a delta layer. false: the files have no MTP
   * layer. NULL: no model of the family has one. */
  bool (*find_mtp)(finder *f, const config *c, dt_head_desc *d, dt_layer *layer);
} family;

/* Finds the family that the keys name: in a GGUF file by the architecture, otherwise by model_type or, if that is
 * absent, by architectures[0]. If both are present, they must agree. DT_EINPUT: the family is unknown, or a key asks
 * for something that no family supports; the message says what is supported. */
dt_status family_find(const keys *k, const family **out);

/* Returns family i of the list; NULL after the last. */
const family *family_at(int i);

/* Gemma 4's assistant, which is a draft head and therefore not in the list. */
extern const family gemma4_assistant;

/* Finds the family of a draft head's layer by its model_type or, in a GGUF file, its kind; the default is Llama.
 * Families that add parts to a layer are refused. */
dt_status family_of_head(const keys *k, const family **out);

/* Finds the tensors of layer f->layer of a head whose layers are complete ones of such a family. */
void family_find_layer_of_head(finder *f, const config *c, dt_layer *l);

#endif
