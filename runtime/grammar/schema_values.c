/* Values of enum and const. See schema_build.h. */
#include "grammar/schema_build.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 8 }; /* strings that are alternatives; more share their beginnings */

static void put_scalar(schema_compiler *c, const cJSON *value) {
  char *text = cJSON_PrintUnformatted(value);
  if (!text) schema_fail_memory(c);
  schema_put_quoted(c->rules, text);
  free(text);
}

void schema_put_value(schema_compiler *c, const cJSON *value) {
  const char *quote = c->space.quote;
  if (cJSON_IsString(value) && quote) {
    schema_put_quoted(c->rules, quote), schema_put_quoted(c->rules, value->valuestring);
    schema_put_quoted(c->rules, quote);
    return;
  }
  if (!cJSON_IsArray(value) && !cJSON_IsObject(value)) {
    put_scalar(c, value);
    return;
  }
  fprintf(c->rules, "\"%c\" %s", cJSON_IsArray(value) ? '[' : '{', c->space.ws);
  for (const cJSON *one = value->child; one; one = one->next) {
    if (one != value->child) fputs(c->space.comma, c->rules);
    if (one->string) {
      schema_put_name(c, one->string);
      fputs(c->space.colon, c->rules);
    }
    schema_put_value(c, one);
    fputs(c->space.ws, c->rules);
  }
  fprintf(c->rules, "\"%c\" ", cJSON_IsArray(value) ? ']' : '}');
}

static bool is_new(const cJSON *const *of, int n, const cJSON *value) {
  for (int i = 0; i < n; i++)
    if (schema_is_equal(of[i], value)) return false;
  return true;
}

int schema_values(schema_compiler *c, const schema_shape *s, const cJSON ***values) {
  const schema_fact *only = s->facts;
  while (only->is != K_ONLY) only = only->next;
  const cJSON **of = arena_take(&c->a, ((size_t)cJSON_GetArraySize(only->value) + 1) * sizeof *of);
  const schema_shape *rest = schema_without(c, s, only); /* its own values match it */
  int n = 0;
  for (const cJSON *one = only->name ? only->value : only->value->child; one; one = only->name ? NULL : one->next)
    if (schema_fits(c, one, rest)) of[n++] = one;
  *values = of;
  return n;
}

const char *schema_put_values(schema_compiler *c, const schema_shape *s) {
  const cJSON **of;
  const char *strings = NULL;
  int n = schema_values(c, s, &of), n_text = 0, n_kept = 0;
  const char **text = arena_take(&c->a, ((size_t)n + 1) * sizeof *text);
  for (int i = 0; i < n; i++)
    if (cJSON_IsString(of[i])) text[n_text++] = of[i]->valuestring;
  const bool shared = n_text > FEW && !c->space.quote;
  if (shared)
    strings = schema_put_automaton(c, automaton_of_texts(&c->a, text, n_text, schema_place(c, c->at, "enum")), true);
  for (int i = 0; i < n; i++)
    if (!(shared && cJSON_IsString(of[i])) && (n > 1000 || is_new(of, n_kept, of[i]))) of[n_kept++] = of[i];
  if (!n_kept) return strings;
  const char *name = schema_begin_rule(c);
  if (strings) fprintf(c->rules, "%s | ", strings);
  for (int i = 0; i < n_kept; i++) {
    if (i) fputs("| ", c->rules);
    schema_put_value(c, of[i]);
  }
  putc('\n', c->rules);
  return name;
}
