/* What the readers of the kinds of heads share: see head.h. */
#ifndef DT_HEAD_PARTS_H
#define DT_HEAD_PARTS_H

#include "model/family.h"
#include "model/head.h"

struct head {
  dt_head_desc desc;
  dt_layer layer, *layers; /* `layers` is used by heads that may have several */
  dt_expert *expert;       /* of the layer; NULL: it has none */
  float *inv_freq, *local_freq;
  int32_t *ids, *id_rows;
  checkpoint files;
  char said[112];
};

/* The element of the head's config.json with this name, or NULL. */
static inline const cJSON *head_item(const checkpoint *c, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(c->json, name);
}

/* Whether its architecture, if one is named, has this in its name. */
bool head_is_called(const checkpoint *c, const char *part);

/* The keys of its layers: speculators keeps them in an object of their own. A GGUF file without an embedding may omit
 * the number of ids: it is the target's. */
dt_status head_keys_of_layer(const checkpoint *c, const dt_shape *target, keys *out, dt_error *err);

/* The keys of a block head that hold this one: those at the top or, if it is not there, those in an object. */
keys head_keys_of_block(const checkpoint *c, const char *name, dt_error *err);

/* Finds its own embedding and output; without them the target's are used. */
void head_find_ends(finder *f, head *h, const dt_shape *target);

/* Writes what head_said returns: `kind`, then the layers whose inputs the head reads. */
void head_name_taps(head *h, const char *kind);

/* head_block.c: whether the files are a block head, and what its description says. */
bool head_is_block(const checkpoint *c);
dt_status head_fill_block(head *h, const dt_shape *target, const char *layers, dt_error *err);

/* head_successors.c: what DSpark and DFlash2 add to a block head. The keys, in desc and in the shape; the tensors of a
 * layer; the head's own, after its output. The last returns the kind's name, or NULL if the head has none of these. */
dt_status head_read_successors(head *h, config *c, dt_error *err);
void head_find_mixes(finder *f, const dt_shape *s, dt_layer *l);
const char *head_find_successors(finder *f, head *h);

/* Fails since the layers that the head reads are not there; where: the key or option that names them. */
dt_status head_wrong_layers(const head *h, const dt_shape *target, const char *where, dt_error *err);
/* Reads layers whose inputs the head reads, as in "2,15,27", into desc.tap. */
dt_status head_read_layers(head *h, const dt_shape *target, const char *layers, dt_error *err);

#endif
