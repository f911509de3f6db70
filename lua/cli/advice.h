/* "Why no speed-up?": after a run of one text that was slower than plain decoding, one line that says what made it so and
 * what to try; --explain tells the numbers behind it, after any run. */
#ifndef ADVICE_H
#define ADVICE_H

#include "cli/compare.h"

/* before, after: the run. compared: with another policy, or NULL. Measures what plain decoding would take where the comparison
 * does not say it: a few passes. */
void advise(const job *j, const outcome *mine, const dtl_usage *before, const dtl_usage *after,
            const comparison *compared);

#endif
