/* A backend that splits a target between two others: the host computes its first layers, and the device the rest and
 * the output. Each row's stream crosses between them in 32 bits, once a pass. Drafts are on the device as a whole; a
 * draft head is refused, since it reads streams of both parts.
 *
 * Every number is one of the two backends', so that the exactness contract holds as it does for these. Which layers
 * the device has changes the output, as another backend does; describe() names them. */
#ifndef DT_SPLIT_H
#define DT_SPLIT_H

#include "backend/backend.h"

/* Its options name the two backends and the number of layers: see dt_backend_options. Sizes of caches are those on the
 * device, where memory is scarce. */
extern const dt_backend_ops dt_split_ops;

#endif
