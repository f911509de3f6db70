/* An exchange of records between all ranks. */
#ifndef DT_RANKS_EXCHANGE_H
#define DT_RANKS_EXCHANGE_H

#include "backend/ranks.h"

/* Exchanges records of `size` bytes: each rank has filled its own, and afterwards all ranks have all of them. All ranks
 * must call it. */
void ranks_exchange(dt_ranks *, void *records, size_t size);

#endif
