/* Reads keys: see config.h. */
#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Null counts as absent: Hugging Face uses the default for both. Dots in a name lead through objects, unless a key has
 * the dots itself. */
static const cJSON *get(const cJSON *json, const char *name) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
  const char *dot = strchr(name, '.');
  if (!item && dot) {
    char object[64];
    snprintf(object, sizeof object, "%.*s", (int)(dot - name), name);
    item = get(cJSON_GetObjectItemCaseSensitive(json, object), dot + 1);
  }
  return cJSON_IsNull(item) ? NULL : item;
}

enum { MOST_SPELLINGS = 4, SPELLING = 64 };

/* A key of this file, in all spellings that occur. */
typedef struct {
  char name[MOST_SPELLINGS][SPELLING];
  const cJSON *item[MOST_SPELLINGS];
  int n;
  char first[SPELLING]; /* the spelling for messages if the key is absent */
} found;

static found find_key(const keys *k, const char *hf, const char *gguf) {
  found f = {.n = 0};
  const char *at = k->gguf ? gguf : hf;
  for (size_t len; at && *at; at += len + (at[len] == '|')) {
    len = strcspn(at, "|");
    snprintf(f.name[f.n], SPELLING, "%.*s", (int)len, at);
    if (!*f.first) memcpy(f.first, f.name[f.n], SPELLING);
    if ((f.item[f.n] = get(k->json, f.name[f.n]))) f.n++;
  }
  return f;
}

dt_status config_int(const keys *k, const char *hf, const char *gguf, int max, int *out) {
  found f = find_key(k, hf, gguf);
  if (f.n == 0) return dt_fail(k->err, DT_EINPUT, "%s: %s is missing", k->path, f.first);
  double value = cJSON_IsNumber(f.item[0]) ? f.item[0]->valuedouble : 0;
  if (!(value >= 1 && value <= max) || value != floor(value))
    return dt_fail(k->err, DT_EINPUT, "%s: %s: expected a whole number from 1 to %d", k->path, f.name[0], max);
  *out = (int)value;
  return DT_OK;
}

dt_status config_int_or(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out) {
  if (find_key(k, hf, gguf).n) return config_int(k, hf, gguf, max, out);
  *out = absent;
  return DT_OK;
}

dt_status config_bool(const keys *k, const char *hf, const char *gguf, bool absent, bool *out) {
  found f = find_key(k, hf, gguf);
  if (f.n && !cJSON_IsBool(f.item[0]))
    return dt_fail(k->err, DT_EINPUT, "%s: %s: expected true or false", k->path, f.name[0]);
  *out = f.n ? cJSON_IsTrue(f.item[0]) : absent;
  return DT_OK;
}

dt_status config_number(const keys *k, const char *hf, const char *gguf, double absent, double min, double max,
                        double *out) {
  found f = find_key(k, hf, gguf);
  *out = absent;
  for (int i = 0; i < f.n; i++) {
    double value = cJSON_IsNumber(f.item[i]) ? f.item[i]->valuedouble : NAN;
    if (!(value >= min && value <= max))
      return dt_fail(k->err, DT_EINPUT, "%s: %s: expected a number from %g to %g", k->path, f.name[i], min, max);
    if (i > 0 && value != *out)
      return dt_fail(k->err, DT_EINPUT, "%s: %s is %g but %s is %g, expected the same value", k->path, f.name[i - 1],
                     *out, f.name[i], value);
    *out = value;
  }
  return DT_OK;
}

dt_status config_act(const keys *k, const char *hf, const char *gguf, const char *absent, dt_act_kind *out) {
  static const struct {
    const char *name;
    dt_act_kind act;
  } known[] = {{"gelu", DT_ACT_GELU_ERF},
               {"gelu_python", DT_ACT_GELU_ERF},
               {"gelu_new", DT_ACT_GELU_TANH},
               {"gelu_fast", DT_ACT_GELU_TANH},
               {"gelu_pytorch_tanh", DT_ACT_GELU_TANH},
               {"gelu_python_tanh", DT_ACT_GELU_TANH},
               {"gelu_accurate", DT_ACT_GELU_TANH},
               {"silu", DT_ACT_SILU},
               {"swish", DT_ACT_SILU}};
  found f = find_key(k, hf, gguf);
  const char *name = !f.n ? absent : cJSON_IsString(f.item[0]) ? f.item[0]->valuestring : "(not a string)";
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name)) continue;
    *out = known[i].act;
    return DT_OK;
  }
  return dt_fail(k->err, DT_EINPUT,
                 "%s: %s \"%.60s\" is not supported; supported: gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, silu",
                 k->path, f.name[0], name);
}

/* A text; "" if it is absent. */
static const char *config_text(const keys *k, const char *hf, const char *gguf) {
  found f = find_key(k, hf, gguf);
  return !f.n ? "" : cJSON_IsString(f.item[0]) ? f.item[0]->valuestring : "(not a string)";
}

/* The type of the rotation, "" if none is named, and the key that names it: Hugging Face uses one of two objects. */
static dt_status rotation_type(const keys *k, const char **type, const char **where) {
  static const char *const key[] = {"rope_scaling", "rope_parameters"};
  *type = config_text(k, NULL, "rope.scaling.type"), *where = "rope.scaling";
  for (int i = 0; i < 2 && !k->gguf; i++) {
    const cJSON *rope = get(k->json, key[i]);
    if (!rope) continue;
    if (!cJSON_IsObject(rope)) return dt_fail(k->err, DT_EINPUT, "%s: %s: expected an object or null", k->path, key[i]);
    const cJSON *item = get(rope, "rope_type");
    if (!item) item = get(rope, "type");
    const char *name = cJSON_IsString(item) ? item->valuestring : item || i == 0 ? "(none)" : "default";
    if (**type && strcmp(*type, name))
      return dt_fail(k->err, DT_EINPUT, "%s: %s of type \"%.60s\" but %s of \"%.60s\", expected the same", k->path,
                     *where, *type, key[i], name);
    *type = name, *where = key[i];
  }
  return DT_OK;
}

/* Explains a rotation type that is not supported. */
static const char *explain_rotation(const char *type) {
  static const struct {
    const char *type, *what;
  } known[] = {{"yarn", " (positions stretched beyond those that the model was trained for)"},
               {"dynamic", " (what was computed before turns with the length of the text)"},
               {"longrope", " (what was computed before turns with the length of the text)"},
               {"mrope", " (positions in pictures)"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].type, type)) return known[i].what;
  return "";
}

/* Reads a required number of the rotation's object. */
static dt_status rotation_number(const keys *k, const char *name, const char *gguf, double min, double max,
                                 double *out) {
  char hf[2 * SPELLING];
  snprintf(hf, sizeof hf, "rope_scaling.%s|rope_parameters.%s", name, name);
  if (!find_key(k, hf, gguf).n)
    return dt_fail(k->err, DT_EINPUT, "%s: %s is missing", k->path, find_key(k, hf, gguf).first);
  return config_number(k, hf, gguf, 0, min, max, out);
}

static dt_status read_llama3(const keys *k, rotation *r) {
  dt_status status = rotation_number(k, "low_freq_factor", NULL, 1e-3, 1e6, &r->low);
  if (!status) status = rotation_number(k, "high_freq_factor", NULL, 1e-3, 1e6, &r->high);
  if (!status) status = rotation_number(k, "original_max_position_embeddings", NULL, 1, CONFIG_MAX_SIZE, &r->original);
  if (!status && r->low >= r->high)
    status = dt_fail(k->err, DT_EINPUT, "%s: low_freq_factor %g, expected less than high_freq_factor %g", k->path,
                     r->low, r->high);
  return status;
}

dt_status config_rotation(const keys *k, const char *base, rotation *out) {
  rotation r = {.factor = 1};
  const char *type = "", *where = "";
  dt_status status = config_number(k, base, "rope.freq_base", 10000, 1e-3, 1e30, &r.base);
  if (!status) status = rotation_type(k, &type, &where);
  if (status) return status;
  bool plain = !*type || !strcmp(type, k->gguf ? "none" : "default");
  bool linear = !strcmp(type, "linear"), llama3 = !k->gguf && !strcmp(type, "llama3");
  if (!plain && !linear && !llama3)
    return dt_fail(k->err, DT_EINPUT, "%s: %s of type \"%.60s\"%s is not supported; supported: %s", k->path, where,
                   type, explain_rotation(type), k->gguf ? "none, linear" : "default, linear, llama3, or null");
  if (!plain) status = rotation_number(k, "factor", "rope.scaling.factor", 1, 1e6, &r.factor);
  if (!status && llama3) status = read_llama3(k, &r);
  *out = r;
  return status;
}

dt_status config_window(const keys *k, const char *use, bool windowed, config *c) {
  bool active = windowed || k->gguf;
  double window = 0;
  dt_status status = use && !k->gguf ? config_bool(k, use, NULL, false, &active) : DT_OK;
  const cJSON *types = get(k->json, "layer_types");
  if (cJSON_IsArray(types)) active = false;
  for (const cJSON *item = cJSON_IsArray(types) ? types->child : NULL; item; item = item->next)
    active |= cJSON_IsString(item) && !strcmp(item->valuestring, "sliding_attention");
  if (!status && active)
    status = config_number(k, "sliding_window", "attention.sliding_window", 0, 0, CONFIG_MAX_SIZE, &window);
  if (!status && window >= 1 && window < c->shape.context) c->shape.window = c->shape.context = (int)window;
  return status;
}

dt_status config_refuse_others(const keys *k) {
  static const struct {
    const char *hf, *gguf;
    double neutral;
    const char *what;
  } others[] = {{"num_local_experts|num_experts|n_routed_experts", "expert_count", 0, "a mixture of experts"},
                {"attn_logit_softcapping", "attn_logit_softcapping", 0, "a cap on attention"},
                {"final_logit_softcapping", "final_logit_softcapping", 0, "a cap on logits"},
                {NULL, "logit_scale", 1, "a scale of logits"},
                {NULL, "residual_scale", 1, "a scale of the residual"},
                {NULL, "embedding_scale", 1, "a scale of embeddings"},
                {NULL, "attention.scale", 0, "an attention scale of its own"},
                {NULL, "rope.scaling.attn_factor", 1, "a scale of the rotation"}};
  if (get(k->json, "quantization_config"))
    return dt_fail(
        k->err, DT_EINPUT,
        "%s: quantization_config: weights in another tool's format are not supported; supported: F32, F16 and "
        "BF16 weights, or a GGUF file",
        k->path);
  if (get(k->json, "vision_config"))
    return dt_fail(k->err, DT_EINPUT, "%s: vision_config: a model of pictures is not supported, only of text", k->path);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    found f = find_key(k, others[i].hf, others[i].gguf);
    for (int j = 0; j < f.n; j++)
      if (!cJSON_IsNumber(f.item[j]) || (f.item[j]->valuedouble != others[i].neutral && f.item[j]->valuedouble != 0))
        return dt_fail(k->err, DT_EINPUT, "%s: %s: %s is not supported", k->path, f.name[j], others[i].what);
  }
  return DT_OK;
}

dt_status config_eos(const keys *k, config *c) {
  const cJSON *item = k->generation ? get(k->generation, "eos_token_id") : NULL;
  if (!item) item = get(k->json, "eos_token_id");
  if (!item) return DT_OK;
  for (const cJSON *id = cJSON_IsArray(item) ? item->child : item; id; id = cJSON_IsArray(item) ? id->next : NULL) {
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < CONFIG_MAX_SIZE) ||
        id->valuedouble != floor(id->valuedouble))
      return dt_fail(k->err, DT_EINPUT, "%s: eos_token_id: expected a token id, a list of them, or null", k->path);
    if (c->n_eos == CONFIG_MAX_EOS)
      return dt_fail(k->err, DT_EINPUT, "%s: eos_token_id: expected at most %d ids", k->path, CONFIG_MAX_EOS);
    c->eos[c->n_eos++] = (int32_t)id->valuedouble;
  }
  return DT_OK;
}
