#include "session/room.h"

#include "draft/text_rows.h"

static size_t bytes_of_cache(const dt_pair *pair, const dt_weights *w, int sequences, int slots) {
  const dt_backend_ops *ops = pair->ops;
  return (size_t)sequences * ops->cache_bytes(w, slots) +
         (ops->scratch_bytes ? ops->scratch_bytes(w, sequences, slots) : 0);
}

/* Returns the bytes of all caches. */
static size_t all_bytes(const dt_pair *pair, int sequences, int context, bool use_draft) {
  size_t bytes = bytes_of_cache(pair, pair->target, sequences, target_slots(context));
  if (use_draft) bytes += bytes_of_cache(pair, pair->draft.weights, sequences, text_rows_slots(&pair->draft, context));
  return bytes;
}

/* Returns how much fits in `left` bytes: for a single sequence the largest context, otherwise the number of sequences;
 * 0: nothing. */
static int most_that_fits(const dt_pair *pair, int sequences, int context, bool use_draft, size_t left) {
  int fits = 0, below = sequences == 1 ? context : sequences;
  while (below - fits > 1) {
    int middle = fits + (below - fits) / 2;
    size_t needs = sequences == 1 ? all_bytes(pair, 1, middle, use_draft) : all_bytes(pair, middle, context, use_draft);
    if (needs <= left)
      fits = middle;
    else
      below = middle;
  }
  return fits;
}

dt_status caches_fit(const dt_pair *pair, int sequences, int context, bool use_draft, dt_error *err) {
  size_t needs = all_bytes(pair, sequences, context, use_draft), left = pair->ops->bytes_free(pair->backend);
  if (needs <= left) return DT_OK;
  double need = (double)needs / (1 << 30), is = (double)left / (1 << 30);
  int fits = most_that_fits(pair, sequences, context, use_draft, left);
  if (sequences == 1)
    return dt_fail(err, DT_EINPUT,
                   "the cache of a context of %d needs %.3g GiB, but only %.3g GiB are free: a context of %d fits",
                   context, need, is, fits);
  return dt_fail(
      err, DT_EINPUT,
      "the caches of %d sequences with a context of %d need %.3g GiB, but only %.3g GiB are free: at most %d fit",
      sequences, context, need, is, fits);
}
