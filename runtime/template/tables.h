/* The functions that templates can call. */
#ifndef DT_TEMPLATE_TABLES_H
#define DT_TEMPLATE_TABLES_H

#include "template/native.h"

extern const tpl_native tpl_text_filters[], tpl_list_filters[], tpl_choosing_filters[];
extern const tpl_native tpl_test_table[], tpl_global_table[];
extern const tpl_native tpl_string_method_table[];
extern const tpl_native tpl_list_method_table[], tpl_tuple_method_table[], tpl_dict_method_table[],
    tpl_cycler_method_table[];

extern const tpl_tables tpl_functions; /* all of them */

#endif
