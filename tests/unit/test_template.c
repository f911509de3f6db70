/* Chat templates: texts and failures as Jinja2 has them (tests/golden/make_template.py), messages, bounds, and which
 * bytes come from the request. */
#include "unit.h"

#include "template/template.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct tm now = {
    .tm_sec = 9, .tm_min = 7, .tm_hour = 13, .tm_mday = 5, .tm_mon = 7, .tm_year = 125, .tm_wday = 2, .tm_yday = 216};

enum { MOST_VARIABLES = 40 };
static template_variable context[MOST_VARIABLES];

static dt_status run(const char *text, const template_variable *variables, int n, template_output *out, dt_error *err) {
  template *t;
  dt_status status = template_compile(text, strlen(text), &t, err);
  if (status) return status;
  status = template_render(t, variables, n, &now, out, err);
  template_free(t);
  return status;
}

/* ---- as Jinja2 --------------------------------------------------------------------------------------------------- */

static cJSON *read_golden(void) {
  static char text[1 << 20];
  FILE *f = fopen(SOURCE_DIR "/tests/golden/template/golden.json", "rb");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  cJSON *json = cJSON_Parse(text);
  assert_non_null(json);
  return json;
}

static void check_case(const char *text, const char *expected, int n) {
  template_output out;
  dt_error err;
  dt_status status = run(text, context, n, &out, &err);
  if (status && expected) fail_msg("[%s]: %s", text, err.message);
  if (!status && !expected) fail_msg("[%s] is [%s], expected a failure", text, out.text);
  if (status) return;
  if (strcmp(out.text, expected) != 0) fail_msg("[%s] is [%s], expected [%s]", text, out.text, expected);
  template_output_free(&out);
}

static void texts_are_what_Jinja2_writes(void **state) {
  (void)state;
  cJSON *golden = read_golden(), *json;
  int n = 0, cases = 0;
  cJSON_ArrayForEach(json, cJSON_GetObjectItem(golden, "context")) {
    assert_true(n < MOST_VARIABLES);
    context[n++] = (template_variable){json->string, json->valuestring, strlen(json->valuestring), TEMPLATE_REQUEST};
  }
  cJSON_ArrayForEach(json, cJSON_GetObjectItem(golden, "cases")) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(json, "template"));
    bool alone = cJSON_HasObjectItem(json, "alone"); /* without the context */
    check_case(text, cJSON_GetStringValue(cJSON_GetObjectItem(json, "text")), alone ? 0 : n);
    cases++;
  }
  assert_true(cases > 400);
  cJSON_Delete(golden);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void messages_name_the_line_and_the_mistake(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"a\n{{ x.y }}", "line 2: 'x' is undefined"},
      {"{{ none.x.y }}", "line 1: 'None' has no attribute 'x'"},
      {"{% set a = {} %}\n\n{{ a.b.c }}", "line 3: 'dict object' has no attribute 'b'"},
      {"{% set a = [] %}{{ a[3].c }}", "'list object' has no such element"},
      {"{{ raise_exception('Roles must\nalternate') }}", "Roles must?alternate"},
      {"{% if %}", "line 1: expected an expression, found 'end of tag'"},
      {"{% for x in [1] %}\n\n", "line 2: expected endfor, found 'end of template'"},
      {"{{ [1].append(2) }}", "access to attribute 'append' of 'list' object is unsafe."},
      {"{{ 'a'|foo }}", "no filter is named 'foo'"},
      {"{{ 1 is foo }}", "no test is named 'foo'"},
      {"{{ 'a'|replace('b') }}", "replace: no new"},
      {"{{ 'a'|replace(1, 2, 3, 4) }}", "replace: 4 arguments, expected at most 3"},
      {"{{ 'a'|trim(x=1) }}", "trim: a named argument that it does not have"},
      {"{{ 9223372036854775807 + 1 }}", "an integer does not fit 64 bits"},
      {"{{ 3 ** 99 }}", "an integer does not fit 64 bits"},
      {"{{ 99999999999999999999 }}", "99999999999999999999 does not fit 64 bits"},
      {"{{ 1 + 'a' }}", "unsupported operand types for +: 'int' and 'str'"},
      {"{{ 1 < 'a' }}", "int and str have no order"},
      {"{{ 'a' }", "unexpected '}'"},
      {"{{ 'a' ! }}", "unexpected character '!'"},
      {"{% break %}", "break outside of a loop"},
      {"{% set 1 = 2 %}", "cannot assign to this expression"},
      {"{% include 'x' %}", "expected a statement, found 'include'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    template_output out;
    fails(run(cases[i].text, NULL, 0, &out, &err), DT_EINPUT, cases[i].message);
  }
}

static void variables_must_be_JSON(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "",         "{", "[1,]", "\"a", "\"\\x\"", "nul", "01x", "1 2", "{\"a\" 1}", "{1: 2}", "99999999999999999999",
      "\"\\ud8\""};
  template_output out;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    template_variable v = {"x", wrong[i], strlen(wrong[i]), TEMPLATE_OWN};
    fails(run("a", &v, 1, &out, &err), DT_EINPUT, "x: byte ");
  }
  const char *text = "\"\\ud83e\\udd9c \\ud83e! \\u0000\"";
  template_variable surrogates = {"x", text, strlen(text), TEMPLATE_OWN};
  ok(run("{{ x }}{{ x|length }}", &surrogates, 1, &out, &err));
  assert_int_equal(out.len, 12);
  assert_memory_equal(out.text,
                      "🦜 \xEF\xBF\xBD! \0"
                      "6",
                      12);
  template_output_free(&out);
}

static void arguments_are_checked(void **state) {
  (void)state;
  template *t;
  template_output out;
  template_variable v = {"x", NULL, 0, TEMPLATE_OWN};
  fails(template_compile(NULL, 1, &t, &err), DT_EINPUT, "bytes is NULL");
  fails(template_compile("", 0, NULL, &err), DT_EINPUT, "out is NULL");
  ok(template_compile(NULL, 0, &t, &err));
  fails(template_render(t, &v, 1, NULL, &out, &err), DT_EINPUT, "variable 0 is NULL");
  fails(template_render(t, NULL, 1, NULL, &out, &err), DT_EINPUT, "variables is NULL");
  fails(template_render(NULL, NULL, 0, NULL, &out, &err), DT_EINPUT, "template is NULL");
  ok(template_render(t, NULL, 0, NULL, &out, &err));
  assert_string_equal(out.text, "");
  template_output_free(&out);
  template_free(t);
  template_free(NULL);
  ok(template_compile("{{ strftime_now('%Y') }}", 24, &t, &err));
  fails(template_render(t, NULL, 0, NULL, &out, &err), DT_EINPUT, "strftime_now: no date is given");
  assert_int_equal(template_render(t, NULL, 0, NULL, &out, NULL), DT_EINPUT);
  template_free(t);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static void check_bound(const char *text, const char *message) {
  template_output out;
  clock_t begin = clock();
  fails(run(text, NULL, 0, &out, &err), DT_EINPUT, message);
  if (clock() - begin > CLOCKS_PER_SEC)
    fail_msg("[%.60s] takes %.1f s", text, (double)(clock() - begin) / CLOCKS_PER_SEC);
}

static void what_never_ends_is_stopped(void **state) {
  (void)state;
  check_bound("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "more than ");
  check_bound("{% for i in range(100000) %}{% if 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 %}{% endif %}{% "
              "endfor %}",
              "more than 1048576 steps");
  check_bound("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested more than 64 levels deep");
  check_bound("{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}", "levels deep");
  check_bound(
      "{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "more than 64 MiB of memory");
  check_bound("{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s|replace('a', "
              "'aaaaaaa') %}{% endfor %}",
              "more than 64 MiB of memory");
  check_bound("{{ 'a' * 1073741824 }}", "more than 64 MiB of memory");
  check_bound("{{ [1] * 1073741824 }}", "more than 64 MiB of memory");
  check_bound("{{ ([1] * 100000) * 100000 }}", "more than 64 MiB of memory");
  check_bound("{{ range(1073741824) }}", "range too big");
  check_bound("{{ '%1073741824d' % 1 }}", "a format wider than");
  check_bound("{{ 'a'|center(1073741824) }}", "a text wider than");
  check_bound("{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{{ s }}{% endfor %}",
              "more than 16 MiB of output");
  check_bound("{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if 'b' in s %}{% endif %}{% endfor %}",
              "more than ");
  check_bound("{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if s == s ~ '' %}{% endif %}{% endfor %}",
              "more than ");
  check_bound("{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% set x = s|length %}{% endfor %}", "more than ");
  check_bound("{% set s = ' ' * 1000000 %}{% for i in range(99999) %}{% set x = s.strip() %}{% endfor %}",
              "more than ");
  check_bound("{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% set x = s[::-1] %}{% endfor %}", "more than ");
  check_bound("{% set l = range(100000)|list %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}", "more than ");
  check_bound("{% set l = range(100000)|list %}{% for i in l %}{% set x = l|sort %}{% endfor %}", "more than ");
  check_bound("{% set l = range(100000)|map('string')|unique|list %}", "more than ");
  check_bound("{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
              "nested more than 64 levels deep");
  check_bound(
      "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson }}",
      "nested more than 64 levels deep");
  check_bound(
      "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [ns.x] }}",
      "nested more than 64 levels deep");
  check_bound("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "nested more than 64 levels deep");
}

/* The template with the number n renders, and with n + 1 it exceeds a bound. */
static void check_edge(const char *format, int n, const char *message) {
  char text[200];
  template_output out;
  snprintf(text, sizeof text, format, n);
  ok(run(text, NULL, 0, &out, &err));
  template_output_free(&out);
  snprintf(text, sizeof text, format, n + 1);
  check_bound(text, message);
}

static void bounds_are_where_the_header_has_them(void **state) {
  (void)state;
  const char *const piece =
      "{%% set s = 'a' * 1048576 %%}{%% for i in range(16) %%}{{ s }}{%% endfor %%}{{ 'b' * %d }}";
  check_edge(piece, 0, "more than 16 MiB of output");
  check_edge("{%% macro m(n) %%}{%% if n %%}{{ m(n - 1) }}{%% endif %%}{%% endmacro %%}{{ m(%d) }}",
             TEMPLATE_LEVELS - 1, "nested more than 64 levels deep");
  check_edge("{%% set s = 'a' * %d %%}", 8388575, "more than 1048576 steps"); /* a step for 8 characters */
  check_edge("{%% for i in range(1000) %%}{%% for j in range(%d) %%}{%% endfor %%}{%% endfor %%}", 349,
             "more than 64 MiB of memory");
}

static void long_variables_allow_more_steps(void **state) {
  (void)state;
  const char *const more = "{% set s = 'a' * 8388576 %}"; /* one step more than a rendering without variables has */
  const template_variable one = {"x", "1", 1, TEMPLATE_OWN};
  template_output out;
  check_bound(more, "more than 1048576 steps");
  ok(run(more, &one, 1, &out, &err));
  template_output_free(&out);
  const int byte = 8 * TEMPLATE_BYTE_STEPS; /* characters that the variable's byte allows */
  char text[64];
  snprintf(text, sizeof text, "{%% set s = 'a' * %d %%}", 8388575 + byte);
  ok(run(text, &one, 1, &out, &err));
  template_output_free(&out);
  snprintf(text, sizeof text, "{%% set s = 'a' * %d %%}", 8388576 + byte);
  fails(run(text, &one, 1, &out, &err), DT_EINPUT, "more than ");
}

/* A template of n repetitions: what is refused has a message. */
static void check_repeated(const char *begin, const char *repeated, int n, const char *end, const char *message) {
  static char text[1 << 20];
  char *to = stpcpy(text, begin);
  for (int i = 0; i < n; i++) to = stpcpy(to, repeated);
  strcpy(to, end);
  template_output out;
  if (message) {
    check_bound(text, message);
    return;
  }
  ok(run(text, NULL, 0, &out, &err));
  template_output_free(&out);
}

static void what_is_nested_too_deeply_is_refused(void **state) {
  (void)state;
  const char *deep = "nested more than 64 levels deep", *deeper = "nested more than 1000 levels deep";
  check_repeated("", "{% if 1 %}", 10000, "", deep);
  check_repeated("", "{% for x in [1] %}", 10000, "", deep);
  check_repeated("", "{% set x %}", 10000, "", deep);
  check_repeated("{{ ", "[", 20000, "", "more than 64 brackets in brackets");
  check_repeated("{{ ", "not ", 20000, "1 }}", deep);
  check_repeated("{{ ", "- ", 20000, "1 }}", deep);
  check_repeated("{{ 1 ", "if 1 else 1 ", 20000, " }}", deep);
  check_repeated("{{ 1 ", "if 1 ", 20000, " }}", deeper);
  check_repeated("{{ x", "|d", 20000, " }}", deeper);
  check_repeated("{{ x", ".y", 20000, " }}", deeper);
  check_repeated("{{ x", "()", 20000, " }}", deeper);
  check_repeated("{{ 1", " + 1", 20000, " }}", NULL);
  check_repeated("{{ 1", " and 1", 20000, " }}", NULL);
  check_repeated("{{ 1", " ~ 1", 20000, " }}", NULL);
  check_repeated("{{ 1", " == 1", 20000, " }}", NULL);
  check_repeated("{% if 0 %}", "{% elif 0 %}", 20000, "{% endif %}", NULL);
  template_output out;
  static char json[1000];
  memset(json, '[', sizeof json);
  template_variable v = {"x", json, sizeof json, TEMPLATE_OWN};
  fails(run("", &v, 1, &out, &err), DT_EINPUT, deep);
}

static void a_long_template_is_refused(void **state) {
  (void)state;
  template *t;
  char *text = calloc(1, TEMPLATE_TEXT + 1);
  fails(template_compile(text, TEMPLATE_TEXT + 1, &t, &err), DT_EINPUT, "a chat template of more than 1048576 bytes");
  memset(text, 'a', TEMPLATE_TEXT);
  ok(template_compile(text, TEMPLATE_TEXT, &t, &err));
  template_free(t);
  for (size_t i = 0; i < TEMPLATE_TEXT; i++) text[i] = "{{ a }}"[i % 7];
  assert_int_equal(template_compile(text, TEMPLATE_TEXT - TEMPLATE_TEXT % 7, &t, NULL),
                   DT_EINPUT); /* its tree takes more than 64 MiB */
  free(text);
}

static void check_twice(template *t, const char *end) {
  template_output out;
  for (int i = 0; i < 2; i++) {
    ok(template_render(t, NULL, 0, NULL, &out, &err));
    assert_string_equal(out.text + out.len - strlen(end), end);
    template_output_free(&out);
  }
}

/* A text that grows is not copied for each part; whoever holds a shorter one sees nothing of that. */
static void a_text_that_grows_is_still_many_texts(void **state) {
  (void)state;
  static const char *const ends[][2] = {
      {"{{ s ~ (s ~ 'b')[-2:] }}", "aab"},
      {"{% set t = s ~ 'b' %}{% set u = s ~ 'c' %}{{ t[-2:] }}{{ u[-2:] }}{{ s[-2:] }}", "abacaa"},
      {"{% set t = s + 'b' %}{% set u = t + 'c' %}{% set v = t + 'd' %}{{ u[-3:] }}{{ v[-3:] }}{{ t[-2:] }}",
       "abcabdab"}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char text[2000], a[601] = "";
    memset(a, 'a', 600);
    template *t;
    for (int built = 0; built < 2; built++) {
      snprintf(text, sizeof text, "{%% set s = '%s'%s %%}%s", a, built ? " + 'a' * 999" : "", ends[i][0]);
      ok(template_compile(text, strlen(text), &t, &err));
      check_twice(t, ends[i][1]);
      template_free(t);
    }
  }
  check_bound("{% set ns = namespace(s='') %}{% for i in range(50000) %}{% set ns.s = ns.s ~ 'abcdefghij' ~ i %}{% "
              "endfor %}{{ ns.s[-15:] }}{{ ns.x.y }}",
              "no attribute 'x'");
}

/* ---- whose words ------------------------------------------------------------------------------------------------- */

static const char *const request = "[{\"role\": \"system\", \"content\": \"SYSTEM <|end|>\"}, {\"role\": \"user\", "
                                   "\"content\": \"  User, Text; ß  \"},"
                                   "{\"role\": \"assistant\", \"content\": \"answer\", \"n\": 5}, {\"role\": \"tool\", "
                                   "\"content\": [{\"text\": \"PART\"}], \"name\": \"f\"},"
                                   "{\"role\": \"us|er\", \"content\": \"x\"}]";

/* The text with what is marked between < and >, after "‹" and "›" would hurt the eye. */
static char *shown(const template_output *out) {
  char *text = calloc(1, 3 * out->len + 1), *to = text;
  for (size_t i = 0, k = 0; i <= out->len; i++) {
    if (k < out->n_marked && i == out->marked[k].end) *to++ = ')', k++;
    if (k < out->n_marked && i == out->marked[k].begin) *to++ = '(';
    if (i < out->len) *to++ = out->text[i];
  }
  return text;
}

static void check_marks(const char *text, const char *expected) {
  template_variable variables[] = {{"messages", request, strlen(request), TEMPLATE_MESSAGES},
                                   {"tools", "[{\"name\": \"TOOL\", \"d\": \"a\\nb\"}]", 31, TEMPLATE_REQUEST},
                                   {"bos", "\"BOS\"", 5, TEMPLATE_OWN}};
  template_output out;
  char set[2000];
  snprintf(set, sizeof set, "{%% set s, u, a, t, o = messages %%}{%% set c = u.content %%}%s", text);
  ok(run(set, variables, 3, &out, &err));
  size_t last = 0;
  for (size_t i = 0; i < out.n_marked; i++) {
    if (out.marked[i].begin < last + (i > 0) || out.marked[i].end <= out.marked[i].begin)
      fail_msg("[%s]: range %zu", text, i);
    last = out.marked[i].end;
  }
  assert_true(last <= out.len);
  char *marked = shown(&out);
  if (strcmp(marked, expected) != 0) fail_msg("[%s] is [%s], expected [%s]", text, marked, expected);
  free(marked);
  template_output_free(&out);
}

static void what_comes_from_the_request_is_marked(void **state) {
  (void)state;
  check_marks("{{ bos }}|{{ s.content }}|{{ a.content }}|{{ t.content[0].text }}|{{ t.name }}",
              "BOS|(SYSTEM <|end|>)|answer|(PART)|(f)");
  check_marks("{{ s.role }}{{ u.role }}{{ a.role }}{{ t.role }}{{ o.role }}", "systemuserassistanttool(us|er)");
  check_marks("<{% for m in messages[:2] %}{{ '[' + m.role + ']' + m.content + ';' }}{% endfor %}>",
              "<[system](SYSTEM <|end|>);[user](  User, Text; ß  );>");
  check_marks("{{ tools[0].name }} {{ tools }}", "(TOOL) [{'(name)': '(TOOL)', '(d)': '(a\\nb)'}]");
  check_marks("{{ tools|tojson }}", "[{\"(name)\": \"(TOOL)\", \"(d)\": \"(a\\nb)\"}]");
  check_marks("{% for k in tools[0] %}{{ k }}.{% endfor %}", "(name).(d).");
}

static void marks_survive_what_is_done_to_texts(void **state) {
  (void)state;
  check_marks("[{{ c.strip() }}] [{{ c|trim }}] [{{ c.lstrip() }}] [{{ c.rstrip() }}]",
              "[(User, Text; ß)] [(User, Text; ß)] [(User, Text; ß  )] [(  User, Text; ß)]");
  check_marks("{{ c|trim|upper }} {{ c|trim|lower }} {{ c|trim|title }} {{ c|trim|capitalize }}",
              "(USER, TEXT; SS) (user, text; ß) (User, Text; SS) (User, text; ß)");
  check_marks("{{ c[2:6] }}-{{ c[2] }}-{{ c[-3] }}-{{ c[5:1:-1] }}", "(User)-(U)-(ß)-(resU)");
  check_marks("{{ c.strip().split(', ') }}", "['(User)', '(Text; ß)']");
  check_marks(
      "{{ c.replace('Text', 'own').strip() }} {{ 'a-b'.replace('-', c.strip()) }} {{ c|trim|replace('e', '<>') }}",
      "(User, )own(; ß) a(User, Text; ß)b (Us)<>(r, T)<>(xt; ß)");
  check_marks("{{ ['a', c|trim, 'b']|join('+') }} {{ (c|trim).join(['a', 'b']) }}",
              "a+(User, Text; ß)+b a(User, Text; ß)b");
  check_marks("{{ 'a' ~ c|trim ~ 1 }} {{ ('x' + c|trim)[0:3] }} {{ (c|trim)[:2] * 2 }}",
              "a(User, Text; ß)1 x(Us) (UsUs)");
  check_marks("{{ '%s=%5s' % (c|trim, 'a') }} {{ '{}:{:>7}'.format(c|trim, c[2:6]) }} {{ '%s'|format(c|trim) }}",
              "(User, Text; ß)=    a (User, Text; ß):   (User) (User, Text; ß)");
  check_marks(
      "{% set x %}a{{ c|trim }}b{% endset %}{{ x }} {% macro m(y) %}<{{ y }}>{% endmacro %}{{ m(c|trim)|upper }}",
      "a(User, Text; ß)b <(USER, TEXT; SS)>");
  check_marks("{% filter upper %}a{{ c|trim }}{% endfilter %} {{ c|trim|e }}{{ 'a'|safe + '(' }} {{ ('<'|safe) + "
              "s.content[7:10] }}",
              "A(USER, TEXT; SS) (User, Text; ß)a( <(&lt;|e)");
  check_marks("{{ (c|trim)|list }} {{ (c|trim)|first }}{{ (c|trim)|last }} {{ c|trim|reverse }}",
              "['(U)', '(s)', '(e)', '(r)', '(,)', '( )', '(T)', '(e)', '(x)', '(t)', '(;)', '( )', '(ß)'] (Uß) (ß "
              ";txeT ,resU)");
  check_marks("{{ c|trim|truncate(8, true, '..', 0) }} {{ (c|trim)|indent(2, true) }} {{ (c[2:6])|center(8) }}|",
              "(User, ).. "
              "  (User, Text; ß)   (User)  |");
  check_marks("{{ c|trim|tojson }} {{ (c|trim)|tojson(ensure_ascii=true) }} {{ [c|trim] }}",
              "\"(User, Text; ß)\" \"(User, Text; \\u00df)\" ['(User, Text; ß)']");
  check_marks("{{ messages|map(attribute='content')|first }} {{ (messages|selectattr('role', 'equalto', "
              "'user')|first).content|trim }}",
              "(SYSTEM <|end|>) (User, Text; ß)");
  check_marks("{% set ns = namespace(x='') %}{% for m in messages[:3] %}{% set ns.x = ns.x + '|' + m.content|trim %}{% "
              "endfor %}{{ ns.x }}",
              "|(SYSTEM <|end|>)|(User, Text; ß)|answer");
  check_marks("{{ c.partition(',')[0] }}{{ c|string|length }}{{ c.removeprefix(' ').strip() }}{{ ''.join(c) }}",
              "(  User)17(User, Text; ß  User, Text; ß  )");
  check_marks("{% set x = 'a' * 600 %}{% for i in range(3) %}{% set x = x ~ c[2:6] ~ 'b' ~ c[2:4] ~ c[4:6] %}{{ "
              "x[600:] }};{% endfor %}",
              "(User)b(User);(User)b(User);(User)b(User);");
  check_marks("{% set n = namespace(x='a' * 600) %}{% for i in 'ab' %}{% set n.x = n.x + c[2:6] %}{% endfor %}{{ "
              "n.x[600:] }}{% set y = n.x + 'b' %}{{ y[604:] }}{{ (n.x + c[2:4])[604:] }}",
              "(UserUserUser)b(UserUs)");
  check_marks("{{ dict(a=c|trim) }} {{ 'x'.ljust(3, c[2]) }} {{ c|trim|wordcount }}",
              "{'a': '(User, Text; ß)'} x(UU) 3");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_what_Jinja2_writes),
      cmocka_unit_test(messages_name_the_line_and_the_mistake),
      cmocka_unit_test(variables_must_be_JSON),
      cmocka_unit_test(arguments_are_checked),
      cmocka_unit_test(what_never_ends_is_stopped),
      cmocka_unit_test(bounds_are_where_the_header_has_them),
      cmocka_unit_test(long_variables_allow_more_steps),
      cmocka_unit_test(what_is_nested_too_deeply_is_refused),
      cmocka_unit_test(a_long_template_is_refused),
      cmocka_unit_test(a_text_that_grows_is_still_many_texts),
      cmocka_unit_test(what_comes_from_the_request_is_marked),
      cmocka_unit_test(marks_survive_what_is_done_to_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
