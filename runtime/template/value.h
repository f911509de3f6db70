/* The values of a template: Python's, as far as templates see them. Lists, tuples and dicts never change (the sandbox
 * refuses their methods that would), so that values may share them. */
#ifndef DT_TEMPLATE_VALUE_H
#define DT_TEMPLATE_VALUE_H

#include "template/string.h"

typedef enum {
  TPL_MISSING, /* an argument that is not given: never seen by a template */
  TPL_UNDEFINED,
  TPL_NONE,
  TPL_BOOL,
  TPL_INT,
  TPL_FLOAT,
  TPL_STRING,
  TPL_LIST,
  TPL_TUPLE,
  TPL_RANGE,
  TPL_VIEW,     /* keys, values or items of a dict */
  TPL_ITERATOR, /* a generator: its items can be taken once */
  TPL_DICT,
  TPL_NAMESPACE,
  TPL_FUNCTION, /* of ours, or a method of a value */
  TPL_MACRO,
  TPL_LOOP,
  TPL_JOINER,
  TPL_CYCLER
} tpl_kind;

typedef struct tpl_value tpl_value;
typedef struct tpl_list tpl_list;
typedef struct tpl_dict tpl_dict;
typedef struct tpl_undefined tpl_undefined;
typedef struct tpl_function tpl_function;
typedef struct tpl_macro tpl_macro;
typedef struct tpl_loop tpl_loop; /* execute.c */

struct tpl_value {
  tpl_kind kind;
  union {
    bool boolean;
    int64_t integer;
    double number;
    const tpl_string *string;
    tpl_list *list; /* all from TPL_LIST to TPL_ITERATOR; joiners and cyclers, whose `at` counts */
    tpl_dict *dict; /* namespaces, too */
    const tpl_undefined *undefined;
    const tpl_function *function;
    const tpl_macro *macro;
    tpl_loop *loop;
  };
};

struct tpl_list {
  tpl_value *items;
  size_t n, at;     /* at: of an iterator, the first that is left */
  const char *type; /* of views and iterators, as Python names it; of a range, all of its text */
};

typedef struct {
  tpl_value key, value;
} tpl_pair;

struct tpl_dict { /* in the order of insertion */
  tpl_pair *pairs;
  size_t n, capacity;
};

struct tpl_macro {
  const tpl_string *name;
  const struct tpl_node *node;
  struct tpl_scope *scope; /* where it is defined */
};

struct tpl_undefined { /* the reason: a text, or a name that `owner` (NULL: the template) lacks */
  const char *text;
  const char *owner;
  tpl_value name;
};

static inline tpl_value tpl_none(void) { return (tpl_value){.kind = TPL_NONE}; }
static inline tpl_value tpl_bool(bool b) { return (tpl_value){.kind = TPL_BOOL, .boolean = b}; }
static inline tpl_value tpl_int(int64_t i) { return (tpl_value){.kind = TPL_INT, .integer = i}; }
static inline tpl_value tpl_float(double x) { return (tpl_value){.kind = TPL_FLOAT, .number = x}; }
static inline tpl_value tpl_string_value(const tpl_string *s) { return (tpl_value){.kind = TPL_STRING, .string = s}; }
static inline bool tpl_is_given(tpl_value v) { return v.kind != TPL_MISSING; }
static inline bool tpl_is_integer(tpl_value v) { return v.kind == TPL_INT || v.kind == TPL_BOOL; }
static inline bool tpl_is_number(tpl_value v) { return tpl_is_integer(v) || v.kind == TPL_FLOAT; }
static inline bool tpl_is_list(tpl_value v) { return v.kind >= TPL_LIST && v.kind <= TPL_ITERATOR; }

tpl_value tpl_undefined_name(tpl_job *job, const tpl_string *name);
tpl_value tpl_undefined_text(tpl_job *job, const char *text);
tpl_value tpl_undefined_item(tpl_job *job, tpl_value owner, tpl_value name);
_Noreturn void tpl_fail_undefined(tpl_job *job, tpl_value v);
void tpl_need_defined(tpl_job *job, tpl_value v);

const char *tpl_type(tpl_value v); /* as Python names it */
bool tpl_truth(tpl_value v);
bool tpl_equal(tpl_job *job, tpl_value a, tpl_value b);
int tpl_order(tpl_job *job, tpl_value a, tpl_value b); /* below, at or above 0; fails for kinds that have no order */

/* Arguments and operands of a kind; the first and the last fail for any other kind. */
int64_t tpl_integer(tpl_job *job, tpl_value v);
double tpl_number(tpl_value v);
const tpl_string *tpl_need_string(tpl_job *job, tpl_value v);

tpl_value tpl_list_new(tpl_job *job, tpl_kind kind, size_t n); /* n items to be filled */
tpl_value tpl_iterator(tpl_job *job, tpl_value list, const char *type);
void tpl_append(tpl_job *job, tpl_value list, tpl_value item); /* to a list that is still being made */
void tpl_reverse(tpl_list *list);
tpl_value tpl_pair_of(tpl_job *job, tpl_value a, tpl_value b);

tpl_value tpl_dict_new(tpl_job *job);
void tpl_dict_set(tpl_job *job, tpl_dict *d, tpl_value key, tpl_value value);
const tpl_value *tpl_dict_get(tpl_job *job, const tpl_dict *d, tpl_value key); /* NULL: no such key */
const tpl_value *tpl_dict_named(tpl_job *job, const tpl_dict *d, const char *key);

bool tpl_is_iterable(tpl_value v); /* true for loops, too */
bool tpl_has_length(tpl_value v);
int64_t tpl_count(tpl_job *job, tpl_value v); /* len() */

/* All items, as a list that must not be changed; empties an iterator. */
tpl_list *tpl_items(tpl_job *job, tpl_value v);

bool tpl_contains(tpl_job *job, tpl_value in, tpl_value item);

/* A stable sort of values by their keys. */
void tpl_sort(tpl_job *job, tpl_value *items, const tpl_value *by, size_t n, bool descending);

#endif
