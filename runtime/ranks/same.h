/* Whether the model of a call is the same on all ranks, whatever copies of its files they have: to be known before a token.
 * All ranks take the steps together, each of them fails by itself (DT_EINPUT names the tensor or file that is another one).
 * Rank 0's files are the model. Compared with them are the program, the files with configuration and tokenizer, and every
 * byte of weights that a rank reads, which is every byte that reaches a sum: a rank hashes what it reads while it lies in
 * a cache, and ranks with rank 0's files read these places there. The rest of a copy nobody reads. Ranks whose files are
 * provably the very same ones as rank 0's have nothing to compare. */
#ifndef DT_SAME_H
#define DT_SAME_H

#include "backend/ranks.h"
#include "model/weights.h"

typedef struct same same;

/* Of a model that outlives it. */
dt_status same_open(dt_ranks *, const dt_model_desc *, int threads, same **out, dt_error *err);
void same_close(same *); /* NULL is allowed */

/* The program, configuration and tokenizer. */
dt_status same_files(same *, dt_error *err);

/* The model to upload between these two calls; its reads are recorded. */
const dt_model_desc *same_desc(const same *);

/* Whether all that was read could be noted; then what was read is compared. */
dt_status same_was_seen(const same *, dt_error *err);
dt_status same_weights(same *, dt_error *err);

#endif
