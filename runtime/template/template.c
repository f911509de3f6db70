/* Compiling and rendering: see template.h. */
#include "template/template.h"
#include "system/need.h"
#include "template/execute.h"
#include "template/parse.h"
#include "template/read_json.h"
#include "template/tables.h"

#include <stdlib.h>
#include <string.h>

struct template {
  tpl_job job; /* its memory */
  const tpl_node *body;
};

/* ---- compilation ------------------------------------------------------------------------------------------------- */

static dt_status compile(template *t, const char *text, size_t len) {
  tpl_job *job = &t->job;
  if (setjmp(job->failed)) return job->status;
  if (len > TEMPLATE_TEXT) tpl_fail(job, "a chat template of more than %d bytes", TEMPLATE_TEXT);
  t->body = tpl_parse(job, &tpl_functions, tpl_lex(job, text, len));
  return DT_OK;
}

dt_status template_compile(const char *text, size_t len, template **out, dt_error *err) {
  NEED(out, "out");
  NEED_TEXT(text, len, "bytes");
  template *t = calloc(1, sizeof *t);
  if (!t) return dt_fail_memory(err, "a chat template", sizeof *t);
  t->job.err = err;
  t->job.is_shared = true;
  dt_status status = compile(t, text ? text : "", len);
  t->job.err = NULL;
  if (status)
    template_free(t);
  else
    *out = t;
  return status;
}

void template_free(template *t) {
  if (t) tpl_job_free(&t->job);
  free(t);
}

/* ---- rendering --------------------------------------------------------------------------------------------------- */

static void copy_output(tpl_job *job, const tpl_builder *b, template_output *out) {
  char *text = malloc(b->len + 1);
  dt_range *marked = b->n_marked ? malloc(b->n_marked * sizeof *marked) : NULL;
  if (!text || (b->n_marked && !marked)) {
    free(text);
    free(marked);
    job->status = dt_fail_memory(job->err, "a conversation's text", b->len);
    return;
  }
  if (b->len) memcpy(text, b->bytes, b->len);
  if (b->n_marked) memcpy(marked, b->marked, b->n_marked * sizeof *marked);
  text[b->len] = '\0';
  *out = (template_output){text, b->len, marked, b->n_marked};
}

/* Sets a variable, or the variables of an object. A later one replaces an earlier one of the same name. */
static void set_variable(tpl_run *run, tpl_scope *scope, const template_variable *variable) {
  tpl_job *job = &run->job;
  tpl_value value = tpl_read_json(job, variable);
  if (variable->name) {
    tpl_scope_set(run, scope, tpl_text(job, variable->name), value);
    return;
  }
  if (value.kind != TPL_DICT) tpl_fail_whole(job, "variables: expected a JSON object");
  for (size_t i = 0; i < value.dict->n; i++)
    tpl_scope_set(run, scope, value.dict->pairs[i].key.string, value.dict->pairs[i].value);
}

static dt_status render(tpl_run *run, const template *t, const template_variable *variables, int n,
                        template_output *out) {
  tpl_job *job = &run->job;
  tpl_builder b = {.job = job, .limit = TEMPLATE_OUTPUT};
  if (setjmp(job->failed)) return job->status;
  for (int i = 0; i < n; i++) job->more_steps += TEMPLATE_BYTE_STEPS * variables[i].len;
  tpl_scope *scope = tpl_scope_new(run, NULL);
  for (int i = 0; i < n; i++) set_variable(run, scope, &variables[i]);
  run->out = &b;
  tpl_execute(run, tpl_scope_new(run, scope), t->body);
  copy_output(job, &b, out);
  return job->status;
}

dt_status template_render(const template *t, const template_variable *variables, int n, const struct tm *now,
                          template_output *out, dt_error *err) {
  NEED(t, "template");
  NEED(out, "out");
  NEED_LIST(variables, n, "variables");
  for (int i = 0; i < n; i++)
    if (!variables[i].json) return dt_fail(err, DT_EINPUT, "%s: variable %d is NULL", __func__, i);
  tpl_run run = {.job = {.err = err}, .tables = &tpl_functions, .now = now};
  dt_status status = render(&run, t, variables, n, out);
  tpl_job_free(&run.job);
  return status;
}

void template_output_free(template_output *out) {
  if (!out) return;
  free(out->text);
  free(out->marked);
  *out = (template_output){0};
}
