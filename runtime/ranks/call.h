/* Calls of a backend that all ranks make: rank 0 sends each call to the others, then every rank makes it on its own CPU
 * backend. Objects that calls make have numbers, equal on all ranks, since all make the same objects in the same
 * order. */
#ifndef DT_RANKS_CALL_H
#define DT_RANKS_CALL_H

#include "backend/backend.h"
#include "backend/ranks.h"
#include "dtrun_ranks.h"

/* A message without a call is rank 0's last. */
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

/* Of the fields behind `on` each kind uses its own. */
typedef struct {
  int32_t kind, on, with; /* numbers of its objects: weights and their cache, a cache and a snapshot */
  int32_t sequence, n;    /* n: sequences, threads, slots or rows */
  int32_t slots;
  const char *version, *variant, *cache_dtype, *path;
  dt_holding how;           /* of a model */
  uint64_t signature;       /* of the model that rank 0 has at `path` */
  const int32_t *from, *to; /* [n] */
  dt_rows rows;
  dt_out out; /* what is wanted; where it goes only rank 0 knows, */
  bool wants;
  const dt_model_desc *desc; /* as this, which the others look up at `path` */
} call;

/* ---- packing.c --------------------------------------------------------------------------------------------------- */

/* A call as one message, malloc'd; NULL: out of memory. */
void *call_pack(const call *, size_t *bytes);
/* The same of a call without texts and lists, which needs no memory. Returns how many bytes. */
enum { CALL_SHORT = 64 };
size_t call_pack_short(const call *, char message[CALL_SHORT]);
/* Its pointers point into the message. False: it is cut short. */
bool call_unpack(void *message, size_t bytes, call *);

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

/* A rank, and the objects that calls have made there. */
typedef struct {
  dt_ranks *ranks;
  void **made; /* [n] NULL: not any more */
  int n;
  int threads; /* of the backend opened last */
} call_site;

/* Makes a call here, as all ranks do at the same time. A new object gets *number. If it fails on one rank, it fails on
 * all, with the message of the first that failed, and makes nothing. */
dt_status call_make(call_site *, const call *, int *number, dt_error *err);

/* The number of an object; -1: no call made it. */
int call_number(const call_site *, const void *made);

/* A hash of where a model's numbers lie and how many they are. */
uint64_t call_signature(const dt_model_desc *);

/* Of all ranks [count], as they answer CALL_INFO. */
void call_info(call_site *, const call *, dt_rank_info *);

#endif
