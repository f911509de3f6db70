/* Ranks: processes on one or several machines that compute one model together. Each rank computes some outputs of every
 * matrix and sends them to all others. No sum is split between ranks, so no bit of the results depends on their number.
 * Rank 0 decides which passes run; the others follow. */
#ifndef DT_RANKS_H
#define DT_RANKS_H

#include <stddef.h>

typedef struct dt_ranks dt_ranks;

struct dt_ranks {
  int rank, count;
  /* Called by all ranks with the same sizes: rank i contributes bytes[i] bytes at data + offset[i]; afterwards every
   * rank has all of them. */
  void (*gather)(dt_ranks *, void *data, const int *bytes, const int *offset);
  /* Called by rank 0: sends a message to all others. */
  void (*tell)(dt_ranks *, const void *message, size_t bytes);
  /* Called by the others: waits for the next message, without a time limit. It is malloc'd; the caller frees it. NULL:
   * out of memory. */
  void *(*listen)(dt_ranks *, size_t *bytes);
  void (*leave)(dt_ranks *); /* called by all ranks, as the last call */
};

#endif
