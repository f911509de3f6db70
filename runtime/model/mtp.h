/* The layer that drafts (MTP) in a model's own files: what stands before and behind it, in all layouts. */
#ifndef DT_MTP_H
#define DT_MTP_H

#include "model/family.h"

/* Names in folders, behind f->prefix. A GGUF file has the same of all families. */
typedef struct {
  const char *fc, *token_norm, *feature_norm, *final_norm;
  const char *embed, *unembed; /* which a layer may have of its own; NULL: in folders it has the target's */
} mtp_names;

/* Finds all but the layer itself, of number f->layer; false: it is not there. */
bool mtp_find(finder *f, const config *c, const mtp_names *names, dt_head_desc *d);

#endif
