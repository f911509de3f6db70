/* A family of models: how its checkpoints name what the canonical model has. Families are told apart in their own files
 * and nowhere else; families.c lists them. */
#ifndef DT_FAMILY_H
#define DT_FAMILY_H

#include "model/checkpoint.h"

typedef struct {
  const char *model_type, *architecture;       /* in config.json */
  const char *gguf;                            /* general.architecture of GGUF files; NULL: the family has none */
  const char *takes;                           /* of the keys that most families lack: see config_refuse_others */
  dt_status (*read)(const keys *k, config *c); /* into a zeroed c */
  /* Views of all its tensors into d and layers[c->shape.layers], which are zeroed; f keeps a failure. */
  void (*find)(finder *f, const config *c, dt_model_desc *d, dt_layer *layers);
  /* The first of the layers that draft (MTP) in a model's own files: views of its tensors, and of those before and
   * after it, into d and layer, which is as the model's last but never a delta layer. false: the files have none.
   * NULL: no model of the family does. */
  bool (*find_mtp)(finder *f, const config *c, dt_head_desc *d, dt_layer *layer);
} family;

/* The family that the keys name, in a GGUF file by the architecture, else by model_type, or where that is absent by
 * architectures[0]; when both are there they must agree. DT_EINPUT says what is supported; also where the keys speak of
 * what no family has. */
dt_status family_find(const keys *k, const family **out);

/* Family i of all; NULL past the last. */
const family *family_at(int i);

/* Gemma 4's assistant, which is a draft head and in no list. */
extern const family gemma4_assistant;

/* The family of a draft head's layer: by its model_type, else Llama. Families that add parts to a layer are refused. */
dt_status family_of_head(const keys *k, const family **out);

#endif
