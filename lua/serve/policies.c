/* Policies as JSON: see policies.h. */
#include "serve/policies.h"

#include <stdlib.h>
#include <string.h>

static void put_or_null(json_text *out, const char *before, const char *text) {
  if (text) {
    answer_text(out, before, text);
  } else {
    json_raw(out, before);
    json_raw(out, "null");
  }
}

static void put_list(json_text *out, const char *before, const char *const *texts, int n) {
  json_raw(out, before);
  for (int i = 0; i < n; i++) answer_text(out, i ? "," : "", texts[i]);
  json_raw(out, "]");
}

static void put_param(json_text *out, const dtl_param *p) {
  answer_text(out, "{\"name\":", p->name);
  answer_text(out, ",\"doc\":", p->doc);
  answer_text(out, ",\"type\":", p->type);
  put_or_null(out, ",\"value\":", p->value);
  answer_text(out, ",\"range\":", p->range);
  put_or_null(out, ",\"min\":", p->min);
  put_or_null(out, ",\"max\":", p->max);
  put_list(out, ",\"one_of\":[", p->one_of, p->n_one_of);
  json_raw(out, "}");
}

static void put_policy(json_text *out, const dtl_policy *policy) {
  static const char *const needs[] = {[DTL_NO_DRAFT] = "none", [DTL_ANY_DRAFT] = "any", [DTL_NEEDS_DRAFT] = "needed"};
  const dtl_policy_info *info = dtl_policy_describe(policy);
  size_t len;
  const char *text = dtl_policy_text(policy, &len);
  answer_text(out, "{\"name\":", info->name);
  answer_text(out, ",\"doc\":", info->doc);
  answer_text(out, ",\"draft\":", needs[info->draft]);
  put_list(out, ",\"presets\":[", info->presets, info->n_presets);
  json_raw(out, ",\"params\":[");
  for (int i = 0; i < info->n_params; i++) {
    if (i) json_raw(out, ",");
    put_param(out, &info->params[i]);
  }
  json_raw(out, "],\"source\":");
  json_string(out, text, len);
  json_raw(out, "}");
}

static void put_mistake(json_text *out, const dt_error *err) {
  answer_text(out, "\"error\":{\"message\":", err->message);
  answer_put(out, ",\"line\":%d}}", err->status == DT_EPOLICY ? err->line : 0);
}

bool policies_list(json_text *out, refusal *why) {
  char **names;
  int n;
  dt_error err;
  if (dtl_installed("policies", &names, &n, &err)) {
    *why = refusal_of(&err);
    return false;
  }
  json_raw(out, "{\"policies\":[");
  for (int i = 0; i < n; i++) {
    dtl_policy *policy;
    if (i) json_raw(out, ",");
    if (dtl_policy_open(&(dtl_policy_options){.policy = names[i], .quiet = true}, &policy, &err)) {
      answer_text(out, "{\"name\":", names[i]);
      json_raw(out, ",");
      put_mistake(out, &err);
    } else {
      put_policy(out, policy);
      dtl_policy_close(policy);
    }
    free(names[i]);
  }
  free(names);
  json_raw(out, "]}");
  return true;
}

void policies_check(json_text *out, const char *source) {
  dtl_policy_options how = {.policy = SOURCE_NAME,
                            .source = source,
                            .source_len = strlen(source),
                            .call_seconds = SOURCE_SECONDS,
                            .quiet = true};
  dtl_policy *policy;
  dt_error err;
  if (dtl_policy_open(&how, &policy, &err)) {
    json_raw(out, "{");
    put_mistake(out, &err);
  } else {
    put_policy(out, policy);
    dtl_policy_close(policy);
  }
}
