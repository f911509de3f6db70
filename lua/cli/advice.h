/* "Why no speedup?": after a run of one text that was slower than plain decoding, one line gives the cause and a
 * remedy. --explain shows the numbers after any run. */
#ifndef ADVICE_H
#define ADVICE_H

#include "cli/compare.h"

/* Gives the advice. before, after: usage around the run. compared: the comparison with another policy, or NULL. If that
 * does not give the time of plain decoding, a few passes are run to measure it. */
void advise(const job *j, const outcome *mine, const dtl_usage *before, const dtl_usage *after,
            const comparison *compared);

#endif
