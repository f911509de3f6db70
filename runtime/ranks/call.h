/* Calls of a backend that all ranks make together: rank 0 sends each call to the others, then every rank makes it on
 * its own CPU backend. The objects that calls create are numbered in order of creation, so their numbers are equal on
 * all ranks. */
#ifndef DT_RANKS_CALL_H
#define DT_RANKS_CALL_H

#include "backend/backend.h"
#include "backend/ranks.h"
#include "dtrun_ranks.h"

/* The kinds of calls. Rank 0 ends with a message without a call. */
typedef enum {
  CALL_OPEN,
  CALL_CLOSE,
  CALL_UPLOAD,
  CALL_FREE_WEIGHTS,
  CALL_CREATE_CACHE,
  CALL_FREE_CACHE,
  CALL_FORWARD,
  CALL_MOVE,
  CALL_KEEP,
  CALL_SNAPSHOT,
  CALL_RESTORE,
  CALL_FREE_SNAPSHOT,
  CALL_INFO
} call_kind;

/* A call. Each kind uses only some of the fields after `on`. */
typedef struct {
  int32_t kind, on, with; /* numbers of its objects: weights and their cache, a cache and a snapshot */
  int32_t sequence, n;    /* n: sequences, threads, slots or rows */
  int32_t slots;
  const char *version, *variant, *cache_dtype, *numa, *path;
  dt_holding how;           /* for a model */
  dt_rope rope;             /* with which it was opened */
  uint64_t signature;       /* signature of the model that rank 0 has at `path` */
  const int32_t *from, *to; /* [n] */
  dt_rows rows;
  dt_out out; /* what is wanted; only rank 0 has the arrays for the results */
  bool wants;
  const dt_model_desc *desc; /* only on rank 0: the others open the model at `path` */
} call;

/* ---- packing.c --------------------------------------------------------------------------------------------------- */

/* Packs a call into one message, malloc'd; NULL: out of memory. */
void *call_pack(const call *, size_t *bytes);
/* The same for a call without strings and lists, without allocating memory. Returns the size of the message. */
enum { CALL_SHORT = 64 };
size_t call_pack_short(const call *, char message[CALL_SHORT]);
/* Unpacks a message; pointers in the call point into the message. False: the message is incomplete. */
bool call_unpack(void *message, size_t bytes, call *);

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

/* A rank, and the objects that calls have created on it. */
typedef struct {
  dt_ranks *ranks;
  void **made; /* [n] by number; NULL: freed */
  int n;
  int threads; /* of the backend that was opened last */
} call_site;

/* Makes a call on this rank; all ranks do so at the same time. *number is the number of a new object. If the call fails
 * on one rank, it fails on all, with the message of the first rank that failed, and creates nothing. */
dt_status call_make(call_site *, const call *, int *number, dt_error *err);

/* Returns the number of an object; -1: no call has created it. */
int call_number(const call_site *, const void *made);

/* Returns a hash of the sizes and file offsets of a model's weights. */
uint64_t call_signature(const dt_model_desc *);

/* Asks all ranks with CALL_INFO and writes their answers: [count]. */
void call_info(call_site *, const call *, dt_rank_info *);

#endif
