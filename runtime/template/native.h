/* Built-in functions: filters, tests, methods, globals. Each is a row of a table: its name, and the names of its
 * parameters, because arguments can be given by position or by name. */
#ifndef DT_TEMPLATE_NATIVE_H
#define DT_TEMPLATE_NATIVE_H

#include "template/value.h"

enum { TPL_PARAMETERS = 5 };

typedef struct tpl_run tpl_run; /* run.h */

typedef struct {
  const tpl_value *values; /* by position */
  size_t n;
  const tpl_pair *named;
  size_t n_named;
} tpl_arguments;

/* self: what is filtered, tested, or whose method it is. given: by parameter, TPL_MISSING where an argument is not
 * given; all: the arguments as they stand, for functions that take any. */
typedef tpl_value tpl_call(tpl_run *run, tpl_value self, const tpl_value *given, const tpl_arguments *all);

#define TPL_FUNCTION(name)                                                                                             \
  static tpl_value name(tpl_run *run, tpl_value self, const tpl_value *given, const tpl_arguments *all)

typedef struct {
  const char *name;
  tpl_call *call;
  const char *parameters; /* names, separated by spaces; "?" ends an optional one; "*": takes any arguments */
} tpl_native;

struct tpl_function { /* the value of a global, or of a method of `self` */
  const tpl_native *native;
  tpl_value self;
};

/* All functions. Each member is a list of tables, which ends with NULL; a table ends with a row without name. A method
 * without `call` is one that the sandbox refuses. */
typedef const tpl_native *const *tpl_table_list;

typedef struct {
  tpl_table_list filters, tests, globals;
  tpl_table_list string_methods, list_methods, tuple_methods, dict_methods, cycler_methods;
} tpl_tables;

const tpl_native *tpl_native_find(tpl_table_list tables, const tpl_string *name); /* NULL: none */
tpl_value tpl_native_call(tpl_run *run, const tpl_native *native, tpl_value self, const tpl_arguments *arguments);

/* An argument, or its default. */
static inline int64_t tpl_integer_or(tpl_job *job, tpl_value v, int64_t missing) {
  return tpl_is_given(v) ? tpl_integer(job, v) : missing;
}

#endif
