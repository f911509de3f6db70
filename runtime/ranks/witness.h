/* Records a rank's reads of a model's files during upload: the offset, the length, and a hash of the bytes that were
 * read. */
#ifndef DT_WITNESS_H
#define DT_WITNESS_H

#include "model/weights.h"
#include "ranks/keyed.h"

#include <pthread.h>

#define WITNESS_MOST (256 << 10) /* maximum number of bytes for one record */

typedef struct {
  uint64_t offset;
  uint32_t bytes, source; /* which of the model's files */
  keyed_hash hash;
} witness_record;

typedef struct {
  dt_model_desc desc; /* the model's, with sources that are watched */
  dt_layer *layer;
  dt_source *source; /* [sources] in the order in which the matrices name them */
  int sources;
  source_watch watch;
  pthread_mutex_t lock;
  witness_record *record; /* [n] in any order */
  size_t n, room;
  bool lost; /* a record is missing since memory ran out */
  unsigned char key[KEYED_KEY];
} witness;

/* The number of a model's matrices, and matrix i in an order that is the same on all ranks. */
int witness_matrices(const dt_model_desc *);
const dt_matrix *witness_matrix(const dt_model_desc *, int i);

/* Opens the record for a model, which must outlive it. DT_EDEVICE: out of memory. */
dt_status witness_open(const dt_model_desc *, witness *out, dt_error *err);
/* From now on reads of w->desc are hashed with w->key and recorded. */
void witness_begin(witness *w);
void witness_close(witness *w);

#endif
