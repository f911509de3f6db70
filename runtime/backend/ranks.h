/* Ranks: processes, on one or several machines, that compute one model together. Each rank has some outputs of every
 * matrix and sends its numbers of a row to all others. No sum goes over several ranks, so no bit depends on their
 * number. Rank 0 decides which passes run; the others follow. */
#ifndef DT_RANKS_H
#define DT_RANKS_H

#include <stddef.h>

typedef struct dt_ranks dt_ranks;

struct dt_ranks {
  int rank, count;
  /* All ranks call it alike: the bytes[i] bytes that rank i has at data + offset[i] are there for all afterwards. */
  void (*gather)(dt_ranks *, void *data, const int *bytes, const int *offset);
  /* Rank 0: a message to all others. */
  void (*tell)(dt_ranks *, const void *message, size_t bytes);
  /* The others: the next message, however long it takes; malloc'd, and the caller's. NULL: out of memory. */
  void *(*listen)(dt_ranks *, size_t *bytes);
  void (*leave)(dt_ranks *); /* all of them; the last call */
};

#endif
