/* All functions that templates can call: see tables.h. */
#include "template/tables.h"

#include <stddef.h>

#define LIST(...)                                                                                                      \
  (const tpl_native *const[]) { __VA_ARGS__, NULL }

const tpl_tables tpl_functions = {.filters = LIST(tpl_text_filters, tpl_list_filters, tpl_choosing_filters),
                                  .tests = LIST(tpl_test_table),
                                  .globals = LIST(tpl_global_table),
                                  .string_methods = LIST(tpl_string_method_table),
                                  .list_methods = LIST(tpl_list_method_table),
                                  .tuple_methods = LIST(tpl_tuple_method_table),
                                  .dict_methods = LIST(tpl_dict_method_table),
                                  .cycler_methods = LIST(tpl_cycler_method_table)};
