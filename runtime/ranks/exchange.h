/* What all ranks tell each other at once. */
#ifndef DT_RANKS_EXCHANGE_H
#define DT_RANKS_EXCHANGE_H

#include "backend/ranks.h"

/* Every rank's record of `size` bytes, of which it has filled its own, for all. All ranks call it alike. */
void ranks_exchange(dt_ranks *, void *records, size_t size);

#endif
