/* Filters of lists and dicts. */
#include "template/case.h"
#include "template/lexer.h"
#include "template/operators.h"
#include "template/tables.h"
#include "template/write.h"

static tpl_value no_item(tpl_run *run) { return tpl_undefined_text(&run->job, "the sequence was empty"); }

static tpl_value generator(tpl_run *run, tpl_value list) { return tpl_iterator(&run->job, list, "generator"); }

/* A new list of the same items. */
static tpl_value copy(tpl_run *run, tpl_value v) {
  const tpl_list *items = tpl_items(&run->job, v);
  tpl_value list = tpl_list_new(&run->job, TPL_LIST, items->n);
  for (size_t i = 0; i < items->n; i++) list.list->items[i] = items->items[i];
  return list;
}

TPL_FUNCTION(do_list) {
  (void)given, (void)all;
  return copy(run, self);
}

static tpl_value reverse_text(tpl_run *run, const tpl_string *s) {
  tpl_value minus = tpl_int(-1), none = tpl_none();
  return tpl_slice(&run->job, tpl_string_value(s), none, none, minus);
}

TPL_FUNCTION(do_reverse) {
  (void)given, (void)all;
  if (self.kind == TPL_STRING) return reverse_text(run, self.string);
  tpl_value list = copy(run, self);
  tpl_reverse(list.list);
  return self.kind == TPL_ITERATOR ? list : tpl_iterator(&run->job, list, "list_reverseiterator");
}

TPL_FUNCTION(do_first) {
  (void)given, (void)all;
  if (self.kind == TPL_ITERATOR) return self.list->at < self.list->n ? self.list->items[self.list->at++] : no_item(run);
  if (self.kind == TPL_STRING) return self.string->len ? tpl_item(run, self, tpl_int(0)) : no_item(run);
  const tpl_list *items = tpl_items(&run->job, self);
  return items->n ? items->items[0] : no_item(run);
}

TPL_FUNCTION(do_last) {
  (void)given, (void)all;
  if (self.kind == TPL_ITERATOR) tpl_fail(&run->job, "'%s' object is not reversible", tpl_type(self));
  if (self.kind == TPL_STRING) return self.string->len ? tpl_item(run, self, tpl_int(-1)) : no_item(run);
  const tpl_list *items = tpl_items(&run->job, self);
  return items->n ? items->items[items->n - 1] : no_item(run);
}

TPL_FUNCTION(do_join) {
  (void)all;
  const tpl_list *items = tpl_items(&run->job, self);
  tpl_builder b = {.job = &run->job};
  for (size_t i = 0; i < items->n; i++) {
    if (i && tpl_is_given(given[0])) tpl_write(&b, given[0]);
    tpl_write(&b, tpl_path(run, items->items[i], given[1]));
    tpl_charge(&run->job, 1);
  }
  return tpl_string_value(tpl_built(&b));
}

TPL_FUNCTION(do_sum) {
  (void)all;
  const tpl_list *items = tpl_items(&run->job, self);
  tpl_value sum = tpl_is_given(given[1]) ? given[1] : tpl_int(0);
  if (sum.kind == TPL_STRING) tpl_fail(&run->job, "sum() can't sum strings");
  for (size_t i = 0; i < items->n; i++) {
    tpl_charge(&run->job, 1);
    sum = tpl_arithmetic(run, '+', sum, tpl_path(run, items->items[i], given[0]));
  }
  return sum;
}

TPL_FUNCTION(do_attr) {
  (void)all;
  tpl_need_defined(&run->job, self);
  if (self.kind == TPL_DICT) { /* a key is no attribute */
    tpl_value empty = tpl_dict_new(&run->job);
    tpl_value found = tpl_attribute(run, empty, tpl_need_string(&run->job, given[0]));
    if (found.kind == TPL_UNDEFINED) return found;
  }
  return tpl_attribute(run, self, tpl_need_string(&run->job, given[0]));
}

/* ---- in rows ----------------------------------------------------------------------------------------------------- */

static size_t positive(tpl_run *run, tpl_value v, const char *what) {
  int64_t n = tpl_integer(&run->job, v);
  if (n < 1 || n > 100000) tpl_fail(&run->job, "%s must be from 1 to 100000", what);
  return (size_t)n;
}

TPL_FUNCTION(do_batch) {
  (void)all;
  const tpl_list *items = tpl_items(&run->job, self);
  size_t n = positive(run, given[0], "batch: linecount");
  tpl_value rows = tpl_list_new(&run->job, TPL_LIST, 0), row = rows;
  for (size_t i = 0; i < items->n; i++) {
    if (i % n == 0) tpl_append(&run->job, rows, row = tpl_list_new(&run->job, TPL_LIST, 0));
    tpl_append(&run->job, row, items->items[i]);
  }
  bool fills = tpl_is_given(given[1]) && given[1].kind != TPL_NONE && items->n;
  while (fills && row.list->n < n) tpl_append(&run->job, row, given[1]);
  return generator(run, rows);
}

TPL_FUNCTION(do_slice) {
  (void)all;
  const tpl_list *items = tpl_items(&run->job, self);
  size_t slices = positive(run, given[0], "slice: slices"), at = 0;
  bool fills = tpl_is_given(given[1]) && given[1].kind != TPL_NONE;
  tpl_value rows = tpl_list_new(&run->job, TPL_LIST, slices);
  for (size_t i = 0; i < slices; i++) {
    size_t extra = i < items->n % slices, n = items->n / slices + extra;
    tpl_value row = rows.list->items[i] = tpl_list_new(&run->job, TPL_LIST, 0);
    for (size_t k = 0; k < n; k++) tpl_append(&run->job, row, items->items[at++]);
    if (fills && !extra) tpl_append(&run->job, row, given[1]);
  }
  return generator(run, rows);
}

/* ---- in order ---------------------------------------------------------------------------------------------------- */

static tpl_value without_case(tpl_run *run, tpl_value v, bool case_sensitive) {
  return v.kind == TPL_STRING && !case_sensitive ? tpl_string_value(tpl_lower(&run->job, v.string)) : v;
}

static tpl_value key_of(tpl_run *run, tpl_value item, tpl_value attribute, bool case_sensitive) {
  return without_case(run, tpl_path(run, item, attribute), case_sensitive);
}

static tpl_value *keys_of(tpl_run *run, const tpl_list *items, tpl_value attribute, bool case_sensitive) {
  tpl_value *keys = tpl_allocate(&run->job, items->n * sizeof *keys);
  for (size_t i = 0; i < items->n; i++) keys[i] = key_of(run, items->items[i], attribute, case_sensitive);
  return keys;
}

/* By which an item is sorted: a list, of one attribute or of several ("a,b"). */
static tpl_value sort_key(tpl_run *run, tpl_value item, tpl_value attribute, bool case_sensitive) {
  tpl_job *job = &run->job;
  const tpl_string *names = attribute.kind == TPL_STRING ? attribute.string : tpl_text(job, "");
  tpl_value key = tpl_list_new(job, TPL_LIST, 0);
  for (size_t at = 0, end; at <= names->len; at = end + 1) {
    end = tpl_find(job, names, tpl_text(job, ","), at, names->len);
    if (end == SIZE_MAX) end = names->len;
    tpl_value path = names->len ? tpl_string_value(tpl_string_part(job, names, at, end)) : attribute;
    tpl_append(job, key, key_of(run, item, path, case_sensitive));
  }
  return key;
}

TPL_FUNCTION(do_sort) {
  (void)all;
  tpl_value list = copy(run, self);
  tpl_value *keys = tpl_allocate(&run->job, list.list->n * sizeof *keys);
  for (size_t i = 0; i < list.list->n; i++) keys[i] = sort_key(run, list.list->items[i], given[2], tpl_truth(given[1]));
  tpl_sort(&run->job, list.list->items, keys, list.list->n, tpl_truth(given[0]));
  return list;
}

static tpl_value extreme(tpl_run *run, tpl_value self, const tpl_value *given, int sign) {
  const tpl_list *items = tpl_items(&run->job, self);
  const tpl_value *keys = keys_of(run, items, given[1], tpl_truth(given[0]));
  size_t best = 0;
  for (size_t i = 1; i < items->n; i++)
    if (tpl_order(&run->job, keys[i], keys[best]) == sign) best = i;
  return items->n ? items->items[best] : no_item(run);
}

TPL_FUNCTION(do_min) { return (void)all, extreme(run, self, given, -1); }
TPL_FUNCTION(do_max) { return (void)all, extreme(run, self, given, 1); }

TPL_FUNCTION(do_unique) {
  (void)all;
  const tpl_list *items = tpl_items(&run->job, self);
  const tpl_value *keys = keys_of(run, items, given[1], tpl_truth(given[0]));
  tpl_value seen = tpl_dict_new(&run->job), list = tpl_list_new(&run->job, TPL_LIST, 0);
  for (size_t i = 0; i < items->n; i++) {
    if (tpl_dict_get(&run->job, seen.dict, keys[i])) continue;
    tpl_dict_set(&run->job, seen.dict, keys[i], tpl_none());
    tpl_append(&run->job, list, items->items[i]);
  }
  return generator(run, list);
}

static tpl_value pairs_of(tpl_run *run, tpl_value v, const char *what) {
  tpl_need_defined(&run->job, v);
  if (v.kind != TPL_DICT) tpl_fail(&run->job, "%s takes a mapping, not %s", what, tpl_type(v));
  tpl_value list = tpl_list_new(&run->job, TPL_LIST, v.dict->n);
  for (size_t i = 0; i < v.dict->n; i++)
    list.list->items[i] = tpl_pair_of(&run->job, v.dict->pairs[i].key, v.dict->pairs[i].value);
  return list;
}

TPL_FUNCTION(do_items) {
  (void)given, (void)all;
  bool none = self.kind == TPL_UNDEFINED;
  return generator(run, none ? tpl_list_new(&run->job, TPL_LIST, 0) : pairs_of(run, self, "items"));
}

TPL_FUNCTION(do_dictsort) {
  (void)all;
  tpl_value list = pairs_of(run, self, "dictsort");
  bool by_value = tpl_is_given(given[1]) && tpl_string_is(tpl_need_string(&run->job, given[1]), "value");
  if (tpl_is_given(given[1]) && !by_value && !tpl_string_is(given[1].string, "key"))
    tpl_fail(&run->job, "dictsort: you can only sort by either \"key\" or \"value\"");
  const tpl_value *keys = keys_of(run, list.list, tpl_int(by_value), tpl_truth(given[0]));
  tpl_sort(&run->job, list.list->items, keys, list.list->n, tpl_truth(given[2]));
  return list;
}

static tpl_value attribute_or(tpl_run *run, tpl_value item, tpl_value attribute, tpl_value otherwise) {
  tpl_value v = tpl_path(run, item, attribute);
  return v.kind == TPL_UNDEFINED && tpl_is_given(otherwise) && otherwise.kind != TPL_NONE ? otherwise : v;
}

TPL_FUNCTION(do_groupby) {
  (void)all;
  tpl_job *job = &run->job;
  tpl_value list = copy(run, self), groups = tpl_list_new(job, TPL_LIST, 0), group = groups, last = {0};
  tpl_value *keys = tpl_allocate(job, list.list->n * sizeof *keys);
  for (size_t i = 0; i < list.list->n; i++)
    keys[i] = without_case(run, attribute_or(run, list.list->items[i], given[0], given[1]), tpl_truth(given[2]));
  tpl_sort(job, list.list->items, keys, list.list->n, false);
  for (size_t i = 0; i < list.list->n; i++) {
    tpl_value name = attribute_or(run, list.list->items[i], given[0], given[1]);
    tpl_value key = without_case(run, name, tpl_truth(given[2]));
    if (!tpl_is_given(last) || !tpl_equal(job, key, last))
      tpl_append(job, groups, tpl_pair_of(job, name, group = tpl_list_new(job, TPL_LIST, 0)));
    tpl_append(job, group, list.list->items[i]);
    last = key;
  }
  return groups;
}

const tpl_native tpl_list_filters[] = {{"attr", do_attr, "name"},
                                       {"batch", do_batch, "linecount fill_with?"},
                                       {"dictsort", do_dictsort, "case_sensitive? by? reverse?"},
                                       {"first", do_first, ""},
                                       {"groupby", do_groupby, "attribute default? case_sensitive?"},
                                       {"items", do_items, ""},
                                       {"join", do_join, "d? attribute?"},
                                       {"last", do_last, ""},
                                       {"list", do_list, ""},
                                       {"max", do_max, "case_sensitive? attribute?"},
                                       {"min", do_min, "case_sensitive? attribute?"},
                                       {"reverse", do_reverse, ""},
                                       {"slice", do_slice, "slices fill_with?"},
                                       {"sort", do_sort, "reverse? case_sensitive? attribute?"},
                                       {"sum", do_sum, "attribute? start?"},
                                       {"unique", do_unique, "case_sensitive? attribute?"},
                                       {0}};
