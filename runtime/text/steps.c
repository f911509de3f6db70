/* Builds a tokenizer: see steps.h. */
#include "text/steps.h"

#include <stdlib.h>
#include <string.h>

static const char WHAT[] = "a step of the tokenizer";

/* Returns the list of n items with one more, zeroed, at its end; NULL: out of memory, and the list is unchanged. */
static void *grow(void *list, int n, size_t item, dt_error *err) {
  char *grown = realloc(list, ((size_t)n + 1) * item);
  if (!grown) {
    dt_fail_memory(err, WHAT, ((size_t)n + 1) * item);
    return NULL;
  }
  memset(grown + (size_t)n * item, 0, item);
  return grown;
}

static dt_status copy_string(const char *s, char **out, dt_error *err) {
  if (!s) return DT_OK;
  *out = strdup(s);
  return *out ? DT_OK : dt_fail_memory(err, WHAT, strlen(s) + 1);
}

dt_status add_normalize(tok *t, normalize_kind kind, const char *from, const char *to, dt_error *err) {
  normalize_step *steps = grow(t->normalize, t->n_normalize, sizeof *steps, err);
  if (!steps) return DT_ENOMEM;
  t->normalize = steps;
  normalize_step *step = &steps[t->n_normalize++];
  step->kind = kind;
  step->from_len = from ? strlen(from) : 0;
  step->to_len = to ? strlen(to) : 0;
  dt_status status = copy_string(from, &step->from, err);
  return status == DT_OK ? copy_string(to, &step->to, err) : status;
}

dt_status add_decode(tok *t, decode_kind kind, const char *from, const char *to, const char *to_first, dt_error *err) {
  decode_step *steps = grow(t->decode, t->n_decode, sizeof *steps, err);
  if (!steps) return DT_ENOMEM;
  t->decode = steps;
  decode_step *step = &steps[t->n_decode++];
  step->kind = kind;
  dt_status status = copy_string(from, &step->from, err);
  if (status == DT_OK) status = copy_string(to, &step->to, err);
  return status == DT_OK ? copy_string(to_first, &step->to_first, err) : status;
}

dt_status add_split(tok *t, split_step step, dt_error *err) {
  split_step *steps = grow(t->split, t->n_split, sizeof *steps, err);
  if (!steps) {
    pcre2_code_free(step.pattern);
    return DT_ENOMEM;
  }
  t->split = steps;
  steps[t->n_split++] = step;
  return DT_OK;
}

dt_status add_pattern(tok *t, const char *pattern, split_keep keep, dt_error *err) {
  split_step step = {.kind = SPLIT_PATTERN, .keep = keep};
  dt_status status = pattern_compile(pattern, strlen(pattern), &step.pattern, err);
  return status == DT_OK ? add_split(t, step, err) : status;
}

static dt_status add_id(int32_t **list, int *n, int32_t id, dt_error *err) {
  int32_t *ids = grow(*list, *n, sizeof *ids, err);
  if (!ids) return DT_ENOMEM;
  *list = ids;
  ids[(*n)++] = id;
  return DT_OK;
}

dt_status add_before(tok *t, int32_t id, dt_error *err) { return add_id(&t->before, &t->n_before, id, err); }

dt_status add_end(tok *t, int32_t id, dt_error *err) {
  for (int i = 0; i < t->n_ends; i++)
    if (t->ends[i] == id) return DT_OK;
  return add_id(&t->ends, &t->n_ends, id, err);
}
