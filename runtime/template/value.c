/* Truth, equality, order and containers of values: see value.h. */
#include "template/value.h"

#include <math.h>
#include <string.h>

/* ---- undefined values -------------------------------------------------------------------------------------------- */

static tpl_value undefined(tpl_job *job, tpl_undefined why) {
  tpl_undefined *u = tpl_allocate(job, sizeof *u);
  *u = why;
  return (tpl_value){.kind = TPL_UNDEFINED, .undefined = u};
}

tpl_value tpl_undefined_name(tpl_job *job, const tpl_string *name) {
  return undefined(job, (tpl_undefined){.name = tpl_string_value(name)});
}

tpl_value tpl_undefined_text(tpl_job *job, const char *text) { return undefined(job, (tpl_undefined){.text = text}); }

tpl_value tpl_undefined_item(tpl_job *job, tpl_value owner, tpl_value name) {
  return undefined(job, (tpl_undefined){.owner = tpl_type(owner), .name = name});
}

/* As Jinja2 says it. */
void tpl_fail_undefined(tpl_job *job, tpl_value v) {
  const tpl_undefined *u = v.undefined;
  if (u->text) tpl_fail(job, "%s", u->text);
  bool of_none = u->owner && strcmp(u->owner, "NoneType") == 0;
  const char *owner = of_none ? "None" : u->owner, *object = of_none ? "" : " object";
  if (u->name.kind != TPL_STRING) tpl_fail(job, "'%s%s' has no such element", owner, object);
  int n = u->name.string->len < 100 ? (int)u->name.string->len : 100;
  if (!owner) tpl_fail(job, "'%.*s' is undefined", n, u->name.string->bytes);
  tpl_fail(job, "'%s%s' has no attribute '%.*s'", owner, object, n, u->name.string->bytes);
}

void tpl_need_defined(tpl_job *job, tpl_value v) {
  if (v.kind == TPL_UNDEFINED) tpl_fail_undefined(job, v);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

const char *tpl_type(tpl_value v) {
  static const char *const names[] = {[TPL_MISSING] = "missing",   [TPL_UNDEFINED] = "Undefined",
                                      [TPL_NONE] = "NoneType",     [TPL_BOOL] = "bool",
                                      [TPL_INT] = "int",           [TPL_FLOAT] = "float",
                                      [TPL_STRING] = "str",        [TPL_LIST] = "list",
                                      [TPL_TUPLE] = "tuple",       [TPL_RANGE] = "range",
                                      [TPL_DICT] = "dict",         [TPL_NAMESPACE] = "Namespace",
                                      [TPL_FUNCTION] = "function", [TPL_MACRO] = "Macro",
                                      [TPL_LOOP] = "LoopContext",  [TPL_JOINER] = "Joiner",
                                      [TPL_CYCLER] = "Cycler"};
  return v.kind == TPL_VIEW || v.kind == TPL_ITERATOR ? v.list->type : names[v.kind];
}

bool tpl_truth(tpl_value v) {
  switch (v.kind) {
  case TPL_MISSING:
  case TPL_UNDEFINED:
  case TPL_NONE: return false;
  case TPL_BOOL: return v.boolean;
  case TPL_INT: return v.integer != 0;
  case TPL_FLOAT: return v.number != 0;
  case TPL_STRING: return v.string->len > 0;
  case TPL_LIST:
  case TPL_TUPLE:
  case TPL_RANGE:
  case TPL_VIEW: return v.list->n > 0;
  case TPL_DICT: return v.dict->n > 0;
  default: return true;
  }
}

double tpl_number(tpl_value v) {
  return v.kind == TPL_FLOAT ? v.number : v.kind == TPL_BOOL ? v.boolean : (double)v.integer;
}

int64_t tpl_integer(tpl_job *job, tpl_value v) {
  tpl_need_defined(job, v);
  if (!tpl_is_integer(v)) tpl_fail(job, "expected an integer, got %s", tpl_type(v));
  return v.kind == TPL_BOOL ? v.boolean : v.integer;
}

const tpl_string *tpl_need_string(tpl_job *job, tpl_value v) {
  tpl_need_defined(job, v);
  if (v.kind != TPL_STRING) tpl_fail(job, "expected a string, got %s", tpl_type(v));
  return v.string;
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static int order_numbers(tpl_value a, tpl_value b) {
  if (tpl_is_integer(a) && tpl_is_integer(b)) {
    int64_t x = a.kind == TPL_BOOL ? a.boolean : a.integer, y = b.kind == TPL_BOOL ? b.boolean : b.integer;
    return (x > y) - (x < y);
  }
  long double x = a.kind == TPL_INT ? (long double)a.integer : (long double)tpl_number(a);
  long double y = b.kind == TPL_INT ? (long double)b.integer : (long double)tpl_number(b);
  return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y); /* 2: neither below, equal nor above */
}

static bool equal_lists(tpl_job *job, const tpl_list *a, const tpl_list *b) {
  if (a->n != b->n) return false;
  tpl_enter(job);
  bool equal = true;
  for (size_t i = 0; i < a->n && equal; i++) equal = tpl_equal(job, a->items[i], b->items[i]);
  tpl_leave(job);
  return equal;
}

static bool equal_dicts(tpl_job *job, const tpl_dict *a, const tpl_dict *b) {
  if (a->n != b->n) return false;
  tpl_enter(job);
  bool equal = true;
  for (size_t i = 0; i < a->n && equal; i++) {
    const tpl_value *other = tpl_dict_get(job, b, a->pairs[i].key);
    equal = other && tpl_equal(job, a->pairs[i].value, *other);
  }
  tpl_leave(job);
  return equal;
}

bool tpl_equal(tpl_job *job, tpl_value a, tpl_value b) {
  tpl_charge(job, 1);
  if (tpl_is_number(a) && tpl_is_number(b)) return order_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
  case TPL_UNDEFINED:
  case TPL_NONE: return true;
  case TPL_STRING: return tpl_charge_bytes(job, a.string->len), tpl_string_equal(a.string, b.string);
  case TPL_LIST:
  case TPL_TUPLE:
  case TPL_RANGE: return equal_lists(job, a.list, b.list);
  case TPL_DICT: return equal_dicts(job, a.dict, b.dict);
  default: return a.list == b.list; /* the same object */
  }
}

static int order_lists(tpl_job *job, const tpl_list *a, const tpl_list *b) {
  size_t n = a->n < b->n ? a->n : b->n, i = 0;
  while (i < n && tpl_equal(job, a->items[i], b->items[i])) i++;
  if (i == n) return (a->n > b->n) - (a->n < b->n);
  tpl_enter(job);
  int order = tpl_order(job, a->items[i], b->items[i]);
  tpl_leave(job);
  return order;
}

int tpl_order(tpl_job *job, tpl_value a, tpl_value b) {
  tpl_need_defined(job, a);
  tpl_need_defined(job, b);
  tpl_charge(job, 1);
  if (tpl_is_number(a) && tpl_is_number(b)) return order_numbers(a, b);
  if (a.kind == b.kind && a.kind == TPL_STRING) {
    tpl_charge_bytes(job, a.string->len);
    return tpl_string_order(a.string, b.string);
  }
  if (a.kind != b.kind || (a.kind != TPL_LIST && a.kind != TPL_TUPLE))
    tpl_fail(job, "%s and %s have no order", tpl_type(a), tpl_type(b));
  return order_lists(job, a.list, b.list);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

tpl_value tpl_list_new(tpl_job *job, tpl_kind kind, size_t n) {
  if (n > TEMPLATE_MEMORY / sizeof(tpl_value)) tpl_fail(job, "more than %d MiB of memory", TEMPLATE_MEMORY >> 20);
  tpl_charge(job, n / 8);
  tpl_list *list = tpl_allocate(job, sizeof *list);
  list->items = tpl_allocate(job, n * sizeof *list->items);
  list->n = n;
  list->type = "generator";
  return (tpl_value){.kind = kind, .list = list};
}

tpl_value tpl_iterator(tpl_job *job, tpl_value list, const char *type) {
  tpl_list *copy = tpl_allocate(job, sizeof *copy);
  *copy = (tpl_list){.items = list.list->items, .n = list.list->n, .type = type};
  return (tpl_value){.kind = TPL_ITERATOR, .list = copy};
}

/* Capacities are powers of two, so that they need not be kept. */
void tpl_append(tpl_job *job, tpl_value list, tpl_value item) {
  tpl_list *l = list.list;
  if ((l->n & (l->n - 1)) == 0) l->items = tpl_grow(job, l->items, l->n, l->n ? 2 * l->n : 1, sizeof *l->items);
  l->items[l->n++] = item;
}

void tpl_reverse(tpl_list *list) {
  for (size_t i = 0; i < list->n / 2; i++) {
    tpl_value other = list->items[i];
    list->items[i] = list->items[list->n - 1 - i];
    list->items[list->n - 1 - i] = other;
  }
}

tpl_value tpl_pair_of(tpl_job *job, tpl_value a, tpl_value b) {
  tpl_value pair = tpl_list_new(job, TPL_TUPLE, 2);
  pair.list->items[0] = a;
  pair.list->items[1] = b;
  return pair;
}

/* ---- dicts ------------------------------------------------------------------------------------------------------- */

static bool can_be_key(tpl_value v) {
  if (v.kind == TPL_LIST || v.kind == TPL_DICT) return false;
  for (size_t i = 0; v.kind == TPL_TUPLE && i < v.list->n; i++)
    if (!can_be_key(v.list->items[i])) return false;
  return true;
}

const tpl_value *tpl_dict_get(tpl_job *job, const tpl_dict *d, tpl_value key) {
  if (!can_be_key(key)) tpl_fail(job, "unhashable type: '%s'", tpl_type(key));
  tpl_charge(job, d->n >> 5);
  for (size_t i = 0; i < d->n; i++) {
    tpl_value k = d->pairs[i].key;
    if (k.kind == TPL_STRING && key.kind == TPL_STRING ? tpl_string_equal(k.string, key.string)
                                                       : tpl_equal(job, k, key))
      return &d->pairs[i].value;
  }
  return NULL;
}

const tpl_value *tpl_dict_named(tpl_job *job, const tpl_dict *d, const char *key) {
  tpl_string name = {.bytes = key, .len = strlen(key)};
  return tpl_dict_get(job, d, tpl_string_value(&name));
}

tpl_value tpl_dict_new(tpl_job *job) {
  return (tpl_value){.kind = TPL_DICT, .dict = tpl_allocate(job, sizeof(tpl_dict))};
}

void tpl_dict_set(tpl_job *job, tpl_dict *d, tpl_value key, tpl_value value) {
  tpl_value *known = (tpl_value *)tpl_dict_get(job, d, key);
  if (known) {
    *known = value;
    return;
  }
  if (d->n == d->capacity) {
    size_t wanted = d->capacity ? 2 * d->capacity : 4;
    d->pairs = tpl_grow(job, d->pairs, d->capacity, wanted, sizeof *d->pairs);
    d->capacity = wanted;
  }
  d->pairs[d->n++] = (tpl_pair){key, value};
}

/* ---- iteration --------------------------------------------------------------------------------------------------- */

bool tpl_is_iterable(tpl_value v) {
  return tpl_is_list(v) || v.kind == TPL_STRING || v.kind == TPL_DICT || v.kind == TPL_UNDEFINED || v.kind == TPL_LOOP;
}

bool tpl_has_length(tpl_value v) { return tpl_is_iterable(v) && v.kind != TPL_ITERATOR && v.kind != TPL_LOOP; }

int64_t tpl_count(tpl_job *job, tpl_value v) {
  if (!tpl_has_length(v)) tpl_fail(job, "object of type '%s' has no len()", tpl_type(v));
  if (v.kind == TPL_UNDEFINED) return 0;
  if (v.kind == TPL_STRING) return (int64_t)tpl_length(job, v.string);
  return (int64_t)(v.kind == TPL_DICT ? v.dict->n : v.list->n);
}

static tpl_list *characters(tpl_job *job, const tpl_string *s) {
  tpl_charge_characters(job, s->len);
  tpl_list *list = tpl_list_new(job, TPL_LIST, tpl_length(job, s)).list;
  for (size_t i = 0, at = 0; i < list->n; i++) {
    size_t end = tpl_after(s, at);
    list->items[i] = tpl_string_value(tpl_string_part(job, s, at, end));
    at = end;
  }
  return list;
}

static tpl_list *keys(tpl_job *job, const tpl_dict *d) {
  tpl_list *list = tpl_list_new(job, TPL_LIST, d->n).list;
  for (size_t i = 0; i < d->n; i++) list->items[i] = d->pairs[i].key;
  return list;
}

static tpl_list *rest(tpl_job *job, tpl_list *iterator) {
  tpl_list *list = tpl_allocate(job, sizeof *list);
  *list = (tpl_list){.items = iterator->items + iterator->at, .n = iterator->n - iterator->at};
  iterator->at = iterator->n;
  return list;
}

tpl_list *tpl_items(tpl_job *job, tpl_value v) {
  if (v.kind == TPL_STRING) return characters(job, v.string);
  if (v.kind == TPL_DICT) return keys(job, v.dict);
  if (v.kind == TPL_ITERATOR) return rest(job, v.list);
  if (v.kind == TPL_UNDEFINED) return tpl_list_new(job, TPL_LIST, 0).list;
  if (!tpl_is_list(v)) tpl_fail(job, "'%s' object is not iterable", tpl_type(v));
  return v.list;
}

bool tpl_contains(tpl_job *job, tpl_value in, tpl_value item) {
  if (in.kind == TPL_STRING) {
    if (item.kind != TPL_STRING)
      tpl_fail(job, "'in <string>' requires a string as left operand, not %s", tpl_type(item));
    return tpl_find(job, in.string, item.string, 0, in.string->len) != SIZE_MAX;
  }
  if (in.kind == TPL_DICT) return tpl_dict_get(job, in.dict, item) != NULL;
  const tpl_list *list = tpl_items(job, in);
  for (size_t i = 0; i < list->n; i++)
    if (tpl_equal(job, list->items[i], item)) return true;
  return false;
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

typedef struct {
  tpl_value item, key;
} keyed;

/* Merges two sorted halves of n items, the second beginning at `half`. */
static void merge(tpl_job *job, keyed *list, keyed *spare, size_t half, size_t n, bool descending) {
  size_t a = 0, b = half, to = 0;
  memcpy(spare, list, n * sizeof *list);
  while (a < half && b < n) {
    bool second =
        descending ? tpl_order(job, spare[a].key, spare[b].key) == -1 : tpl_order(job, spare[b].key, spare[a].key) < 0;
    list[to++] = spare[second ? b++ : a++];
  }
  while (a < half) list[to++] = spare[a++];
  while (b < n) list[to++] = spare[b++];
}

static void sort(tpl_job *job, keyed *list, keyed *spare, size_t n, bool descending) {
  if (n < 2) return;
  sort(job, list, spare, n / 2, descending);
  sort(job, list + n / 2, spare, n - n / 2, descending);
  merge(job, list, spare, n / 2, n, descending);
}

void tpl_sort(tpl_job *job, tpl_value *items, const tpl_value *by, size_t n, bool descending) {
  keyed *list = tpl_allocate(job, 2 * n * sizeof *list);
  for (size_t i = 0; i < n; i++) list[i] = (keyed){items[i], by[i]};
  sort(job, list, list + n, n, descending);
  for (size_t i = 0; i < n; i++) items[i] = list[i].item;
}
