/* Tests: the words that follow "is". */
#include "template/case.h"
#include "template/lexer.h"
#include "template/operators.h"
#include "template/tables.h"
#include "template/write.h"

#define TEST(name, condition)                                                                                          \
  static tpl_value name(tpl_run *run, tpl_value v, const tpl_value *given, const tpl_arguments *all) {                 \
    (void)run, (void)given, (void)all;                                                                                 \
    return tpl_bool(condition);                                                                                        \
  }

static bool is_remainder(tpl_run *run, tpl_value v, tpl_value divisor, int64_t remainder) {
  return tpl_equal(&run->job, tpl_arithmetic(run, '%', v, divisor), tpl_int(remainder));
}

static bool is_same(tpl_run *run, tpl_value a, tpl_value b) {
  if (a.kind != b.kind) return false;
  return a.kind <= TPL_STRING ? tpl_equal(&run->job, a, b) : a.list == b.list;
}

static bool can_be_called(tpl_value v) {
  return v.kind == TPL_FUNCTION || v.kind == TPL_MACRO || v.kind == TPL_UNDEFINED || v.kind == TPL_JOINER ||
         v.kind == TPL_LOOP;
}

static bool names_one(tpl_table_list tables, tpl_value v) {
  return v.kind == TPL_STRING && tpl_native_find(tables, v.string);
}

TEST(is_defined, v.kind != TPL_UNDEFINED)
TEST(is_undefined, v.kind == TPL_UNDEFINED)
TEST(is_none, v.kind == TPL_NONE)
TEST(is_boolean, v.kind == TPL_BOOL)
TEST(is_true, v.kind == TPL_BOOL && v.boolean)
TEST(is_false, v.kind == TPL_BOOL && !v.boolean)
TEST(is_integer, v.kind == TPL_INT)
TEST(is_float, v.kind == TPL_FLOAT)
TEST(is_number, tpl_is_number(v))
TEST(is_string, v.kind == TPL_STRING)
TEST(is_mapping, v.kind == TPL_DICT)
TEST(is_sequence, tpl_has_length(v) && v.kind != TPL_VIEW)
TEST(is_iterable, tpl_is_iterable(v))
TEST(is_callable, can_be_called(v))
TEST(is_escaped, v.kind == TPL_STRING && v.string->safe)
TEST(is_odd, is_remainder(run, v, tpl_int(2), 1))
TEST(is_even, is_remainder(run, v, tpl_int(2), 0))
TEST(is_divisible, is_remainder(run, v, given[0], 0))
TEST(is_lower, tpl_is_lower(&run->job, tpl_str(&run->job, v)))
TEST(is_upper, tpl_is_upper(&run->job, tpl_str(&run->job, v)))
TEST(is_sameas, is_same(run, v, given[0]))
TEST(is_in, tpl_contains(&run->job, given[0], v))
TEST(is_filter, names_one(run->tables->filters, v))
TEST(is_test, names_one(run->tables->tests, v))
TEST(is_equal, tpl_compare(&run->job, T_EQUAL, v, given[0]))
TEST(is_not_equal, tpl_compare(&run->job, T_NOT_EQUAL, v, given[0]))
TEST(is_less, tpl_compare(&run->job, '<', v, given[0]))
TEST(is_less_equal, tpl_compare(&run->job, T_LESS_EQUAL, v, given[0]))
TEST(is_more, tpl_compare(&run->job, '>', v, given[0]))
TEST(is_more_equal, tpl_compare(&run->job, T_MORE_EQUAL, v, given[0]))

const tpl_native tpl_test_table[] = {{"defined", is_defined, ""},
                                     {"undefined", is_undefined, ""},
                                     {"none", is_none, ""},
                                     {"string", is_string, ""},
                                     {"mapping", is_mapping, ""},
                                     {"iterable", is_iterable, ""},
                                     {"sequence", is_sequence, ""},
                                     {"boolean", is_boolean, ""},
                                     {"true", is_true, ""},
                                     {"false", is_false, ""},
                                     {"number", is_number, ""},
                                     {"integer", is_integer, ""},
                                     {"float", is_float, ""},
                                     {"odd", is_odd, ""},
                                     {"even", is_even, ""},
                                     {"divisibleby", is_divisible, "num"},
                                     {"lower", is_lower, ""},
                                     {"upper", is_upper, ""},
                                     {"callable", is_callable, ""},
                                     {"escaped", is_escaped, ""},
                                     {"filter", is_filter, ""},
                                     {"test", is_test, ""},
                                     {"sameas", is_sameas, "other"},
                                     {"in", is_in, "seq"},
                                     {"equalto", is_equal, "other"},
                                     {"==", is_equal, "other"},
                                     {"eq", is_equal, "other"},
                                     {"!=", is_not_equal, "other"},
                                     {"ne", is_not_equal, "other"},
                                     {"<", is_less, "other"},
                                     {"lt", is_less, "other"},
                                     {"lessthan", is_less, "other"},
                                     {"<=", is_less_equal, "other"},
                                     {"le", is_less_equal, "other"},
                                     {">", is_more, "other"},
                                     {"gt", is_more, "other"},
                                     {"greaterthan", is_more, "other"},
                                     {">=", is_more_equal, "other"},
                                     {"ge", is_more_equal, "other"},
                                     {0}};
