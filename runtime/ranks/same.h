/* Checks before the first token that all ranks have the same model in their copies of its files. All ranks take these
 * steps together; each rank fails by itself (DT_EINPUT names the tensor or file that differs). Rank 0's files define
 * the model. The check compares the program, the files of configuration and tokenizer, and every byte of weights that a
 * rank reads, which is every byte that enters a sum. A rank hashes bytes while it reads them; ranks with rank 0's files
 * read and hash the same places there. Ranks whose files are provably rank 0's own have nothing to compare. */
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

/* Compares the recorded reads. Fails if they could not all be recorded. */
dt_status same_was_seen(const same *, dt_error *err);
dt_status same_weights(same *, dt_error *err);

#endif
