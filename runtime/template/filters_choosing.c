/* Filters that apply another filter or a test to each item: map, select and their like. */
#include "template/run.h"
#include "template/tables.h"

/* The arguments from the one at `from` on. */
static tpl_arguments rest(const tpl_arguments *all, size_t from) {
  const tpl_value *values = from ? all->values + from : all->values;
  return (tpl_arguments){values, all->n - from, all->named, all->n_named};
}

static const tpl_native *named(tpl_run *run, tpl_table_list tables, tpl_value name, const char *what) {
  const tpl_native *native = tpl_native_find(tables, tpl_need_string(&run->job, name));
  if (!native) tpl_fail(&run->job, "no %s of that name", what);
  return native;
}

static tpl_value argument(const tpl_arguments *all, const char *name) {
  for (size_t i = 0; i < all->n_named; i++)
    if (tpl_string_is(all->named[i].key.string, name)) return all->named[i].value;
  return (tpl_value){0};
}

/* The result for any false value; its arguments are not checked, as in Jinja2. */
static tpl_value nothing(tpl_run *run) {
  return tpl_iterator(&run->job, tpl_list_new(&run->job, TPL_LIST, 0), "generator");
}

static tpl_value map_attribute(tpl_run *run, const tpl_list *items, const tpl_arguments *all) {
  tpl_value attribute = argument(all, "attribute"), otherwise = argument(all, "default");
  bool has_default = tpl_is_given(otherwise) && otherwise.kind != TPL_NONE;
  if (!tpl_is_given(attribute)) tpl_fail(&run->job, "map requires a filter argument");
  tpl_value list = tpl_list_new(&run->job, TPL_LIST, items->n);
  for (size_t i = 0; i < items->n; i++) {
    tpl_value v = tpl_path(run, items->items[i], attribute);
    list.list->items[i] = v.kind == TPL_UNDEFINED && has_default ? otherwise : v;
    tpl_charge(&run->job, 1);
  }
  return list;
}

static tpl_value map_filter(tpl_run *run, const tpl_list *items, const tpl_arguments *all) {
  const tpl_native *filter = named(run, run->tables->filters, all->values[0], "filter");
  tpl_arguments arguments = rest(all, 1);
  tpl_value list = tpl_list_new(&run->job, TPL_LIST, items->n);
  for (size_t i = 0; i < items->n; i++) list.list->items[i] = tpl_native_call(run, filter, items->items[i], &arguments);
  return list;
}

TPL_FUNCTION(do_map) {
  (void)given;
  if (!tpl_truth(self)) return nothing(run);
  const tpl_list *items = tpl_items(&run->job, self);
  tpl_value list = all->n ? map_filter(run, items, all) : map_attribute(run, items, all);
  return tpl_iterator(&run->job, list, "generator");
}

/* The items whose test (without one: whose truth) is `wanted`. by_attribute: of the attribute that the first
 * argument names. */
static tpl_value choose(tpl_run *run, tpl_value self, const tpl_arguments *all, bool by_attribute, bool wanted) {
  if (!tpl_truth(self)) return nothing(run);
  const tpl_list *items = tpl_items(&run->job, self);
  tpl_value list = tpl_list_new(&run->job, TPL_LIST, 0);
  if (by_attribute && all->n == 0) tpl_fail(&run->job, "missing parameter for attribute name");
  bool has_test = all->n > by_attribute;
  const tpl_native *test = has_test ? named(run, run->tables->tests, all->values[by_attribute], "test") : NULL;
  tpl_arguments arguments = rest(all, by_attribute + has_test);
  for (size_t i = 0; i < items->n; i++) {
    tpl_value v = by_attribute ? tpl_path(run, items->items[i], all->values[0]) : items->items[i];
    if (test) v = tpl_native_call(run, test, v, &arguments);
    if (tpl_truth(v) == wanted) tpl_append(&run->job, list, items->items[i]);
    tpl_charge(&run->job, 1);
  }
  return tpl_iterator(&run->job, list, "generator");
}

TPL_FUNCTION(do_select) { return (void)given, choose(run, self, all, false, true); }
TPL_FUNCTION(do_reject) { return (void)given, choose(run, self, all, false, false); }
TPL_FUNCTION(do_selectattr) { return (void)given, choose(run, self, all, true, true); }
TPL_FUNCTION(do_rejectattr) { return (void)given, choose(run, self, all, true, false); }

const tpl_native tpl_choosing_filters[] = {
    {"map", do_map, "*"},       {"reject", do_reject, "*"},         {"rejectattr", do_rejectattr, "*"},
    {"select", do_select, "*"}, {"selectattr", do_selectattr, "*"}, {0}};
