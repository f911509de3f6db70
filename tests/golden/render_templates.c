/* Renders chat templates for check_templates.py. Standard input is a list of commands, each a line and bytes after it:
 *
 *   T LEN         the template: LEN bytes follow
 *   V NAME LEN    a variable, as JSON: LEN bytes follow; messages, tools and documents come from the request
 *   R TIMES       renders that often; then the variables are forgotten
 *
 * Standard output, after each T and R: "O LEN MICROSECONDS" (of processor time, for one rendering), the text, and a
 * line with the beginnings and ends of what is marked; or "E" and the message in one line. */
#include "commands.h"

#include "template/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_VARIABLES = 64 };

static void answer(dt_status status, const dt_error *err, const template_output *out, double microseconds) {
  if (status)
    printf("E %s\n", err->message);
  else
    printf("O %zu %.1f\n", out->len, microseconds);
  if (!status && out->len) fwrite(out->text, 1, out->len, stdout);
  for (size_t i = 0; i < out->n_marked; i++) printf("%zu %zu ", out->marked[i].begin, out->marked[i].end);
  if (!status) printf("\n");
  fflush(stdout);
}

static void compile(template **t, size_t len) {
  char *text = read_bytes(len);
  dt_error err = {0};
  template_output none = {0};
  template_free(*t);
  *t = NULL;
  answer(template_compile(text, len, t, &err), &err, &none, 0);
  free(text);
}

static void render(const template *t, const template_variable *variables, int n, int times) {
  struct tm now = {
      .tm_year = 125, .tm_mon = 7, .tm_mday = 5, .tm_hour = 13, .tm_min = 7, .tm_sec = 9, .tm_wday = 2, .tm_yday = 216};
  template_output out = {0};
  dt_error err = {0};
  dt_status status = DT_OK;
  clock_t begin = clock();
  for (int i = 0; i < times && !status; i++) {
    template_output_free(&out);
    status = template_render(t, variables, n, &now, &out, &err);
  }
  answer(status, &err, &out, 1e6 * (double)(clock() - begin) / CLOCKS_PER_SEC / times);
  template_output_free(&out);
}

static template_origin origin_of(const char *name) {
  if (strcmp(name, "messages") == 0) return TEMPLATE_MESSAGES;
  return strcmp(name, "tools") == 0 || strcmp(name, "documents") == 0 ? TEMPLATE_REQUEST : TEMPLATE_OWN;
}

int main(void) {
  char line[300], name[MOST_VARIABLES][100];
  char *json[MOST_VARIABLES];
  template *t = NULL;
  template_variable variables[MOST_VARIABLES];
  int n = 0, times;
  size_t len;
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "T %zu", &len) == 1) {
      compile(&t, len);
    } else if (n < MOST_VARIABLES && sscanf(line, "V %99s %zu", name[n], &len) == 2) {
      json[n] = read_bytes(len);
      variables[n] = (template_variable){name[n], json[n], len, origin_of(name[n])};
      n++;
    } else if (sscanf(line, "R %d", &times) == 1) {
      render(t, variables, n, times);
      while (n) free(json[--n]);
    } else {
      return 1;
    }
  }
  template_free(t);
  return 0;
}
