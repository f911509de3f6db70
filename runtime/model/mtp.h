/* The layer for multi-token prediction (MTP) in a model's own files: finds the tensors before and after it, in all
 * layouts. */
#ifndef DT_MTP_H
#define DT_MTP_H

#include "model/family.h"

/* Names of the tensors in folders, after f->prefix. In GGUF files the names are the same for all families. */
typedef struct {
  const char *fc, *token_norm, *feature_norm, *final_norm;
  const char *embed, *unembed; /* the layer's own, if it has them; NULL: in folders it uses the target's */
} mtp_names;

/* Finds all tensors except those of the layer f->layer itself. false: there is no such layer. */
bool mtp_find(finder *f, const config *c, const mtp_names *names, dt_head_desc *d);

#endif
