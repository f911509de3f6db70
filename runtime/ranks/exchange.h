/* An exchange of records between all ranks. */
#ifndef DT_RANKS_EXCHANGE_H
#define DT_RANKS_EXCHANGE_H

#include "backend/ranks.h"

/* Each rank has filled its own record of `size` bytes; afterwards all ranks have all. All ranks call it. */
void ranks_exchange(dt_ranks *, void *records, size_t size);

#endif
