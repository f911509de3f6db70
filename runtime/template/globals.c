/* Functions that templates call by name: range, namespace, dict, joiner, cycler, raise_exception, strftime_now. */
#include "template/run.h"
#include "template/tables.h"
#include "template/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RANGE = 100000 }; /* of Jinja2's sandbox */

static const char *range_text(tpl_job *job, int64_t first, int64_t end, int64_t step) {
  char text[100], tail[30] = "";
  if (step != 1) snprintf(tail, sizeof tail, ", %" PRId64, step);
  int n = snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 "%s)", first, end, tail);
  return memcpy(tpl_allocate(job, (size_t)n + 1), text, (size_t)n + 1);
}

static tpl_value range(tpl_run *run, int64_t first, int64_t end, int64_t step) {
  tpl_job *job = &run->job;
  if (step == 0) tpl_fail(job, "range() arg 3 must not be zero");
  __int128 distance = step > 0 ? (__int128)end - first : (__int128)first - end, by = step > 0 ? step : -(__int128)step;
  __int128 n = distance <= 0 ? 0 : (distance + by - 1) / by;
  if (n > MOST_RANGE) tpl_fail(job, "range too big: more than %d items", MOST_RANGE);
  tpl_value list = tpl_list_new(job, TPL_RANGE, (size_t)n);
  list.list->type = range_text(job, first, end, step);
  for (int64_t i = 0; i < (int64_t)n; i++) list.list->items[i] = tpl_int(first + i * step);
  return list;
}

TPL_FUNCTION(make_range) {
  (void)self, (void)all;
  tpl_job *job = &run->job;
  if (!tpl_is_given(given[1])) return range(run, 0, tpl_integer(job, given[0]), 1);
  return range(run, tpl_integer(job, given[0]), tpl_integer(job, given[1]), tpl_integer_or(job, given[2], 1));
}

static void add_pairs(tpl_run *run, tpl_dict *d, tpl_value from) {
  tpl_need_defined(&run->job, from);
  for (size_t i = 0; from.kind == TPL_DICT && i < from.dict->n; i++)
    tpl_dict_set(&run->job, d, from.dict->pairs[i].key, from.dict->pairs[i].value);
  if (from.kind == TPL_DICT) return;
  const tpl_list *items = tpl_items(&run->job, from);
  for (size_t i = 0; i < items->n; i++) {
    const tpl_list *pair = tpl_items(&run->job, items->items[i]);
    if (pair->n != 2) tpl_fail(&run->job, "dict() takes pairs");
    tpl_dict_set(&run->job, d, pair->items[0], pair->items[1]);
  }
}

TPL_FUNCTION(make_dict) {
  (void)self, (void)given;
  tpl_value dict = tpl_dict_new(&run->job);
  if (all->n > 1) tpl_fail(&run->job, "expected at most 1 argument, got %zu", all->n);
  if (all->n) add_pairs(run, dict.dict, all->values[0]);
  for (size_t i = 0; i < all->n_named; i++) tpl_dict_set(&run->job, dict.dict, all->named[i].key, all->named[i].value);
  return dict;
}

TPL_FUNCTION(make_namespace) {
  tpl_value v = make_dict(run, self, given, all);
  for (size_t i = 0; i < v.dict->n; i++) {
    const tpl_string *name = tpl_need_string(&run->job, v.dict->pairs[i].key);
    if (name->len && name->bytes[0] == '_') tpl_fail(&run->job, "an attribute of a namespace begins with _");
  }
  v.kind = TPL_NAMESPACE;
  return v;
}

TPL_FUNCTION(make_joiner) {
  (void)self, (void)all;
  tpl_value joiner = tpl_list_new(&run->job, TPL_JOINER, 1);
  joiner.list->items[0] = tpl_is_given(given[0]) ? given[0] : tpl_string_value(tpl_text(&run->job, ", "));
  return joiner;
}

TPL_FUNCTION(make_cycler) {
  (void)self, (void)given;
  if (all->n == 0) tpl_fail(&run->job, "at least one item has to be provided");
  tpl_value cycler = tpl_list_new(&run->job, TPL_CYCLER, all->n);
  for (size_t i = 0; i < all->n; i++) cycler.list->items[i] = all->values[i];
  return cycler;
}

/* As a C string of at most n - 1 bytes. */
static void copy_text(tpl_run *run, tpl_value v, char *out, size_t n) {
  const tpl_string *s = tpl_str(&run->job, v);
  size_t len = s->len < n - 1 ? s->len : n - 1;
  if (len) memcpy(out, s->bytes, len);
  out[len] = '\0';
}

TPL_FUNCTION(raise_exception) {
  (void)self, (void)all;
  char message[sizeof run->job.err->message];
  copy_text(run, given[0], message, sizeof message);
  tpl_fail_whole(&run->job, message);
}

TPL_FUNCTION(strftime_now) {
  (void)self, (void)all;
  char format[256], text[1024];
  tpl_need_string(&run->job, given[0]);
  copy_text(run, given[0], format, sizeof format);
  if (!run->now) tpl_fail(&run->job, "strftime_now: no date is given");
  size_t n = strftime(text, sizeof text, format, run->now);
  tpl_builder b = {.job = &run->job};
  tpl_add(&b, text, n, false);
  return tpl_string_value(tpl_built(&b));
}

const tpl_native tpl_global_table[] = {{"range", make_range, "start stop? step?"},
                                       {"namespace", make_namespace, "*"},
                                       {"dict", make_dict, "*"},
                                       {"joiner", make_joiner, "sep?"},
                                       {"cycler", make_cycler, "*"},
                                       {"raise_exception", raise_exception, "message"},
                                       {"strftime_now", strftime_now, "format"},
                                       {0}};
