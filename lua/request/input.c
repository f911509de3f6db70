/* Reads the values of fields: see input.h. */
#include "request/input.h"

#include "files/fail.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *place(request_input *in, const request_field *f) { return (char *)in + f->at; }

static void note_name(request_input *in, const request_field *f, const char *name) {
  char *kept = in->name[request_field_index(f)];
  snprintf(kept, sizeof *in->name, "%s", name);
}

bool request_given(const request_input *in, const request_field *f) { return *in->name[request_field_index(f)]; }

bool request_limits_reasoning(const request_input *in) {
  return request_given(in, request_field_named("think_tokens", ON_LINE)) &&
         in->request.seq.adjustments.reasoning.tokens >= 0;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static dt_status put_whole(int *out, const char *name, double value, dt_error *err) {
  if (value != floor(value)) return dtl_fail(err, DT_EINPUT, "%s: %.17g is not a whole number", name, value);
  if (!(value >= INT_MIN && value <= INT_MAX))
    return dtl_fail(err, DT_EINPUT, "%s: %.17g is out of range: whole numbers have 32 bits", name, value);
  *out = (int)value;
  return DT_OK;
}

/* A number that becomes 0 as a float is refused, since 0 may have another meaning. */
static dt_status put_real(float *out, const char *name, double value, dt_error *err) {
  if (value != 0 && fabs(value) < (double)FLT_MIN)
    return dtl_fail(err, DT_EINPUT, "%s: %g is too close to 0: the smallest number above 0 is %.3g", name, value,
                    (double)FLT_MIN);
  *out = (float)value;
  return DT_OK;
}

dt_status request_number(request_input *in, const request_field *f, const char *name, double value, dt_error *err) {
  dt_logprobs *logprobs = &in->request.seq.logprobs;
  note_name(in, f, name);
  if (value == 0 && (f->where & NO_ZERO)) return dtl_fail(err, DT_EINPUT, "%s: 0 is out of range", name);
  if (f->kind == FIELD_REAL) return put_real(place(in, f), name, value, err);
  if (f->kind == FIELD_WHOLE) return put_whole(place(in, f), name, value, err);
  logprobs->wanted = true;
  return put_whole(&logprobs->top, name, value, err);
}

static dt_status read_schema_again(request_input *in, dt_error *err);

dt_status request_flag(request_input *in, const request_field *f, const char *name, bool value, dt_error *err) {
  if (f->kind != FIELD_FLAG) return dtl_fail(err, DT_EINPUT, "%s: expected a value", name);
  note_name(in, f, name);
  *(bool *)place(in, f) = value;
  return in->schema ? read_schema_again(in, err) : DT_OK; /* the flag may be one of schemas */
}

dt_status request_seed(request_input *in, const request_field *f, const char *name, uint64_t value) {
  note_name(in, f, name);
  *(uint64_t *)place(in, f) = value;
  return DT_OK;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static dt_status read_number(request_input *in, const request_field *f, const char *name, const char *text,
                             dt_error *err) {
  const char *digits = text + (*text == '-' || *text == '+');
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (f->kind != FIELD_REAL && (!*digits || digits[strspn(digits, "0123456789")]))
    return dtl_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number", name, text);
  if (end == text || *end || isnan(value) || strpbrk(text, " \t\n\v\f\r"))
    return dtl_fail(err, DT_EINPUT, "%s '%.60s': expected a number", name, text);
  if (value == 0 && errno == ERANGE) value = DBL_TRUE_MIN;
  return request_number(in, f, name, value, err);
}

static dt_status read_seed(request_input *in, const request_field *f, const char *name, const char *text,
                           dt_error *err) {
  errno = 0;
  unsigned long long value = strtoull(text, NULL, 10);
  if (!*text || text[strspn(text, "0123456789")] || errno)
    return dtl_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from 0 to 2^64 - 1", name, text);
  return request_seed(in, f, name, value);
}

static dt_status add_text(const char ***list, int *n, const char *text, dt_error *err) {
  const char **grown = realloc(*list, sizeof *grown * ((size_t)*n + 1));
  if (!grown) return dtl_fail_memory(err, "texts of a request");
  *list = grown;
  grown[(*n)++] = text;
  return DT_OK;
}

static dt_status add_stop(request_input *in, const char *name, const char *text, dt_error *err) {
  dt_seq_options *seq = &in->request.seq;
  if (!*text) return dtl_fail(err, DT_EINPUT, "%s: expected a text that is not empty", name);
  dt_status status = add_text(&in->stop, &seq->n_stop, text, err);
  seq->stop = in->stop;
  return status;
}

static dt_status copy(const char *text, char **grammar, dt_error *err) {
  *grammar = strdup(text);
  return *grammar ? DT_OK : dtl_fail_memory(err, "a grammar");
}

dt_status request_grammar(request_input *in, const char *form, const char *text, dt_error *err) {
  const bool is_schema = strcmp(form, "json_schema") == 0;
  char *made = NULL, *schema = is_schema ? strdup(text) : NULL;
  in->note[0] = '\0';
  if (is_schema && !schema) return dtl_fail_memory(err, "a JSON schema");
  dt_status status = is_schema                    ? dt_schema_grammar(text, &in->how, &made, in->note, err)
                     : strcmp(form, "regex") == 0 ? dt_regex_grammar(text, &made, err)
                                                  : copy(text, &made, err);
  if (!status && (status = dt_check_grammar(made, err))) free(made);
  if (status) {
    free(schema);
    return status;
  }
  free(in->grammar), free(in->schema);
  in->schema = schema;
  in->request.seq.adjustments.grammar = in->grammar = made;
  return DT_OK;
}

static dt_status read_schema_again(request_input *in, dt_error *err) {
  char *schema = in->schema;
  in->schema = NULL;
  dt_status status = request_grammar(in, "json_schema", schema, err);
  free(schema);
  return status;
}

dt_status request_text(request_input *in, const request_field *f, const char *name, const char *text, dt_error *err) {
  switch (f->kind) {
  case FIELD_WHOLE:
  case FIELD_REAL:
  case FIELD_LOGPROBS: return read_number(in, f, name, text, err);
  case FIELD_SEED: return read_seed(in, f, name, text, err);
  case FIELD_FLAG: return dtl_fail(err, DT_EINPUT, "%s: expected true or false", name);
  default: break;
  }
  note_name(in, f, name);
  switch (f->kind) {
  case FIELD_STOP: return add_stop(in, name, text, err);
  case FIELD_BIAS: return add_text(&in->biases, &in->n_biases, text, err);
  case FIELD_GRAMMAR:
    if (in->grammar) return dtl_fail(err, DT_EINPUT, "grammar, json_schema and regex: give only one of them");
    return request_grammar(in, f->name, text, err);
  default: *(const char **)place(in, f) = text; return DT_OK;
  }
}

/* ---- biases ------------------------------------------------------------------------------------------------------ */

dt_status request_add_bias(request_input *in, dt_bias bias, dt_error *err) {
  dt_adjustments *s = &in->request.seq.adjustments;
  dt_bias *grown = realloc(in->bias, sizeof *grown * ((size_t)s->n_bias + 1));
  if (!grown) return dtl_fail_memory(err, "biases");
  s->bias = in->bias = grown;
  grown[s->n_bias++] = bias;
  return DT_OK;
}

dt_status request_biases(request_input *in, const dt_pair *pair, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < in->n_biases && !status; i++) {
    dt_bias bias;
    status = dtl_bias(pair, in->biases[i], &bias, err);
    if (!status) status = request_add_bias(in, bias, err);
  }
  return status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

dt_status request_rename(const request_input *in, dt_error *err) {
  char rest[sizeof err->message];
  if (err->status != DT_EINPUT) return err->status;
  for (int i = 0; request_field_at(i); i++) {
    const char *name = request_field_at(i)->name;
    size_t n = strlen(name);
    if (!*in->name[i] || strncmp(err->message, name, n) != 0 || err->message[n] != ':') continue;
    memcpy(rest, err->message + n, sizeof rest - n);
    snprintf(err->message, sizeof err->message, "%s%.*s", in->name[i], (int)(sizeof rest - n), rest);
    break;
  }
  return err->status;
}

dt_status request_check(const request_input *in, dt_error *err) {
  dtl_request r = in->request;
  dt_status status = DT_OK;
  if (!request_given(in, request_field_named("tokens", ON_LINE))) r.seq.max_tokens = -1;
  if (in->costs && strcmp(in->costs, "learn") != 0 && strcmp(in->costs, "table") != 0)
    status = dtl_fail(err, DT_EINPUT, "costs: '%.60s': expected learn or table", in->costs);
  if (!status) status = dtl_request_check(&r, err);
  return status && err ? request_rename(in, err) : status;
}

void request_free(request_input *in) {
  free(in->stop), free(in->biases), free(in->bias), free(in->grammar), free(in->schema);
}
