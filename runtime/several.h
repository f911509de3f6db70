/* The results of several prompts: shown in the prompts' order, written as they come. Only main.c uses it. */
#ifndef SEVERAL_H
#define SEVERAL_H

#include "host.h"
#include "prompts.h"

typedef struct {
  const prompt_list *prompts; /* must outlive the results */
  const char *json;           /* path, "-" or NULL: a line of JSON for each result, as it ends */
  bool quiet;
  bool silent; /* nothing is shown at all */
} several_options;

typedef struct several several;

/* The file is empty from now on. DT_EIO: it cannot be written. */
dt_status several_open(const several_options *options, several **out, dt_error *err);

/* As dtl_batch.done. */
bool several_done(void *user, int prompt, const dtl_result *result, const dtl_error *failure);

typedef struct {
  int ended, failed; /* sequences */
  long tokens;
  double ms; /* from several_open to several_finish */
} several_sum;

/* After the last: shows what waited for a sequence that never ended, and closes the file. Returns the exit status: the
 * first failure's, or 0. */
int several_finish(several *s, several_sum *sum);

/* The first prompt whose tokens differ, where both have ended; -1: none. */
int several_compare(const several *a, const several *b);

void several_free(several *s); /* NULL is allowed */

#endif
