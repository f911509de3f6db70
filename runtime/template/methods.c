/* Methods of lists, tuples, dicts and cyclers. Those that would change a value are refused, as in Jinja2's
 * ImmutableSandboxedEnvironment. */
#include "template/run.h"
#include "template/tables.h"

/* ---- lists and tuples -------------------------------------------------------------------------------------------- */

TPL_FUNCTION(do_count) {
  (void)all;
  int64_t n = 0;
  for (size_t i = 0; i < self.list->n; i++) n += tpl_equal(&run->job, self.list->items[i], given[0]);
  return tpl_int(n);
}

TPL_FUNCTION(do_index) {
  (void)all;
  for (size_t i = 0; i < self.list->n; i++)
    if (tpl_equal(&run->job, self.list->items[i], given[0])) return tpl_int((int64_t)i);
  tpl_fail(&run->job, "the value is not in the list");
}

TPL_FUNCTION(do_copy) { return (void)run, (void)given, (void)all, self; } /* nothing can change either */

/* ---- dicts ------------------------------------------------------------------------------------------------------- */

typedef enum { KEYS, VALUES, ITEMS } part;

static tpl_value view(tpl_run *run, const tpl_dict *d, part what) {
  static const char *const types[] = {"dict_keys", "dict_values", "dict_items"};
  tpl_value list = tpl_list_new(&run->job, TPL_VIEW, d->n);
  list.list->type = types[what];
  for (size_t i = 0; i < d->n; i++) {
    const tpl_pair *p = &d->pairs[i];
    list.list->items[i] = what == KEYS ? p->key : what == VALUES ? p->value : tpl_pair_of(&run->job, p->key, p->value);
  }
  return list;
}

TPL_FUNCTION(do_keys) { return (void)given, (void)all, view(run, self.dict, KEYS); }
TPL_FUNCTION(do_values) { return (void)given, (void)all, view(run, self.dict, VALUES); }
TPL_FUNCTION(do_items) { return (void)given, (void)all, view(run, self.dict, ITEMS); }

TPL_FUNCTION(do_get) {
  (void)all;
  const tpl_value *known = tpl_dict_get(&run->job, self.dict, given[0]);
  return known ? *known : tpl_is_given(given[1]) ? given[1] : tpl_none();
}

/* ---- cyclers ----------------------------------------------------------------------------------------------------- */

TPL_FUNCTION(do_next) {
  (void)run, (void)given, (void)all;
  tpl_value item = self.list->items[self.list->at];
  self.list->at = (self.list->at + 1) % self.list->n;
  return item;
}

TPL_FUNCTION(do_reset) {
  (void)run, (void)given, (void)all;
  self.list->at = 0;
  return tpl_none();
}

#define REFUSED(name)                                                                                                  \
  { name, NULL, "" }

const tpl_native tpl_list_method_table[] = {{"count", do_count, "value"},
                                            {"index", do_index, "value"},
                                            {"copy", do_copy, ""},
                                            REFUSED("append"),
                                            REFUSED("clear"),
                                            REFUSED("extend"),
                                            REFUSED("insert"),
                                            REFUSED("pop"),
                                            REFUSED("remove"),
                                            REFUSED("reverse"),
                                            REFUSED("sort"),
                                            {0}};
const tpl_native tpl_tuple_method_table[] = {{"count", do_count, "value"}, {"index", do_index, "value"}, {0}};
const tpl_native tpl_dict_method_table[] = {{"get", do_get, "key default?"},
                                            {"items", do_items, ""},
                                            {"keys", do_keys, ""},
                                            {"values", do_values, ""},
                                            {"copy", do_copy, ""},
                                            REFUSED("clear"),
                                            REFUSED("pop"),
                                            REFUSED("popitem"),
                                            REFUSED("setdefault"),
                                            REFUSED("update"),
                                            {0}};
const tpl_native tpl_cycler_method_table[] = {{"next", do_next, ""}, {"reset", do_reset, ""}, {0}};
