/* Checks before the first token that the copies of the model's files are the same on all ranks. All ranks make these
 * calls together; each rank fails by itself (DT_EINPUT names the tensor or file that differs). Rank 0's files define
 * the model. The check compares the program, the files of configuration and tokenizer, and every byte of weights that a
 * rank reads, that is, every byte that enters a sum. A rank hashes bytes while it reads them; ranks with rank 0's files
 * read and hash the same ranges there. Ranks whose files are provably those of rank 0 have nothing to compare. */
#ifndef DT_SAME_H
#define DT_SAME_H

#include "backend/ranks.h"
#include "model/weights.h"

typedef struct same same;

/* Opens the check of a model, which must outlive it. */
dt_status same_open(dt_ranks *, const dt_model_desc *, int threads, same **out, dt_error *err);
void same_close(same *); /* NULL is allowed */

/* Compares the program, configuration and tokenizer. */
dt_status same_files(same *, dt_error *err);

/* Returns the description to upload between same_files and same_was_seen; its reads are recorded. */
const dt_model_desc *same_desc(const same *);

/* same_was_seen fails if not all reads could be recorded; same_weights compares the recorded reads. */
dt_status same_was_seen(const same *, dt_error *err);
dt_status same_weights(same *, dt_error *err);

#endif
