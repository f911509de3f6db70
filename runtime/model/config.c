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

enum { MOST_SPELLINGS = 4, SPELLING = CONFIG_SPELLING };

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

config_key config_find(const keys *k, const char *hf, const char *gguf) {
  found f = find_key(k, hf, gguf);
  config_key key = {.item = f.n ? f.item[0] : NULL};
  memcpy(key.name, f.n ? f.name[0] : f.first, sizeof key.name);
  return key;
}

/* Whether the item is a whole number from min to max. */
static bool is_int(const cJSON *item, int min, int max, int *out) {
  double value = cJSON_IsNumber(item) ? item->valuedouble : min - 1.0;
  if (!(value >= min && value <= max) || value != floor(value)) return false;
  *out = (int)value;
  return true;
}

static dt_status read_int(const keys *k, const found *f, int min, int max, int *out) {
  if (is_int(f->item[0], min, max, out)) return DT_OK;
  return dt_fail(k->err, DT_EINPUT, "%s: %s: expected a whole number from %d to %d", k->path, f->name[0], min, max);
}

dt_status config_int(const keys *k, const char *hf, const char *gguf, int max, int *out) {
  found f = find_key(k, hf, gguf);
  if (f.n == 0) return dt_fail(k->err, DT_EINPUT, "%s: %s is missing", k->path, f.first);
  return read_int(k, &f, 1, max, out);
}

dt_status config_int_or(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out) {
  if (find_key(k, hf, gguf).n) return config_int(k, hf, gguf, max, out);
  *out = absent;
  return DT_OK;
}

dt_status config_count(const keys *k, const char *hf, const char *gguf, int absent, int max, int *out) {
  found f = find_key(k, hf, gguf);
  *out = absent;
  return f.n ? read_int(k, &f, 0, max, out) : DT_OK;
}

dt_status config_each(const keys *k, const char *hf, const char *gguf, int absent, int max, int layers, int *out) {
  found f = find_key(k, hf, gguf);
  int all = absent;
  if (!f.n || !k->gguf || !cJSON_IsArray(f.item[0])) {
    dt_status status = absent ? config_int_or(k, hf, gguf, absent, max, &all) : config_int(k, hf, gguf, max, &all);
    for (int i = 0; i < layers; i++) out[i] = all;
    return status;
  }
  int listed = cJSON_GetArraySize(f.item[0]), i = 0;
  if (listed != layers)
    return dt_fail(k->err, DT_EINPUT, "%s: %s: found %d elements, expected one for each of %d layers", k->path,
                   f.name[0], listed, layers);
  for (const cJSON *item = f.item[0]->child; item; item = item->next, i++)
    if (!is_int(item, 1, max, &out[i]))
      return dt_fail(k->err, DT_EINPUT, "%s: %s: layer %d: expected a whole number from 1 to %d", k->path, f.name[0], i,
                     max);
  return DT_OK;
}

dt_status config_check_heads(const keys *k, int heads, int kv_heads, int head_dim) {
  if (heads % kv_heads)
    return dt_fail(k->err, DT_EINPUT, "%s: %d heads, expected a multiple of %d key heads", k->path, heads, kv_heads);
  if (head_dim < 2 || head_dim % 2)
    return dt_fail(k->err, DT_EINPUT, "%s: heads of %d numbers, expected an even number", k->path, head_dim);
  if (head_dim > CONFIG_MAX_SIZE / heads)
    return dt_fail(k->err, DT_EINPUT, "%s: %d heads of %d numbers, expected at most %d numbers in total", k->path,
                   heads, head_dim, CONFIG_MAX_SIZE);
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

const char *config_text(const keys *k, const char *hf, const char *gguf) {
  found f = find_key(k, hf, gguf);
  return !f.n ? "" : cJSON_IsString(f.item[0]) ? f.item[0]->valuestring : "(not a string)";
}

/* Reads whether an element of a list of layers says that its layer is of the kind. False: it is neither of the words
 * for yes and no. */
typedef bool says(const cJSON *item, bool *yes);

static bool says_local(const cJSON *item, bool *yes) {
  const char *text = cJSON_IsString(item) ? item->valuestring : "";
  *yes = !strcmp(text, "sliding_attention") || cJSON_IsTrue(item);
  return *yes || !strcmp(text, "full_attention") || cJSON_IsFalse(item);
}

static bool says_still(const cJSON *item, bool *yes) { /* the list says which layers rotate */
  *yes = cJSON_IsNumber(item) && item->valuedouble == 0;
  return *yes || (cJSON_IsNumber(item) && item->valuedouble == 1);
}

static dt_status read_layers(const keys *k, const char *name, const cJSON *list, const char *expected, says *of,
                             const config *c, bool *out) {
  int i = 0;
  for (const cJSON *item = list->child; item && i < c->shape.layers; item = item->next, i++)
    if (!of(item, &out[i]))
      return dt_fail(k->err, DT_EINPUT, "%s: %s: layer %d: expected %s", k->path, name, i, expected);
  int listed = cJSON_GetArraySize(list);
  return listed == c->shape.layers
             ? DT_OK
             : dt_fail(k->err, DT_EINPUT, "%s: %s: found %d elements, expected one for each of %d layers", k->path,
                       name, listed, c->shape.layers);
}

/* The width of a window, 0: none. */
static dt_status read_window(const keys *k, int usual, int *window) {
  return config_count(k, "sliding_window", "attention.sliding_window", usual, CONFIG_MAX_SIZE, window);
}

dt_status config_local(const keys *k, int usual_window, int each, config *c) {
  dt_status status = read_window(k, usual_window, &c->window);
  const char *name = k->gguf ? "attention.sliding_window_pattern" : "layer_types";
  const cJSON *list = get(k->json, name);
  if (status || c->window == 0) return status;
  if (list && !k->gguf && !cJSON_IsArray(list))
    return dt_fail(k->err, DT_EINPUT, "%s: %s: expected a list of words, one for each layer", k->path, name);
  if (cJSON_IsArray(list))
    return read_layers(k, name, list, k->gguf ? "true or false" : "\"sliding_attention\" or \"full_attention\"",
                       says_local, c, c->local);
  status = config_int_or(k, "sliding_window_pattern", name, each, CONFIG_MAX_LAYERS, &each);
  for (int i = 0; i < c->shape.layers; i++) c->local[i] = each == 0 || (i + 1) % each != 0;
  return status;
}

dt_status config_still(const keys *k, int each, config *c) {
  const cJSON *list = k->gguf ? NULL : get(k->json, "no_rope_layers");
  if (list && !cJSON_IsArray(list))
    return dt_fail(k->err, DT_EINPUT, "%s: no_rope_layers: expected a list of 1 and 0, one for each layer", k->path);
  if (list) return read_layers(k, "no_rope_layers", list, "1 (it rotates) or 0", says_still, c, c->still);
  dt_status status = config_int_or(k, "no_rope_layer_interval", NULL, each, CONFIG_MAX_LAYERS, &each);
  for (int i = 0; i < c->shape.layers; i++) c->still[i] = (i + 1) % each == 0;
  return status;
}

dt_status config_dense(const keys *k, config *c) {
  int step = 1, layers = c->shape.layers;
  const cJSON *list = k->gguf ? NULL : get(k->json, "mlp_only_layers");
  dt_status status = config_int_or(k, "decoder_sparse_step", NULL, 1, CONFIG_MAX_LAYERS, &step);
  if (status) return status;
  if (list && !cJSON_IsArray(list))
    return dt_fail(k->err, DT_EINPUT, "%s: mlp_only_layers: expected a list of layers", k->path);
  for (int i = 0; i < layers; i++) c->dense[i] = (i + 1) % step != 0;
  for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
    int layer;
    if (!is_int(item, 0, layers - 1, &layer))
      return dt_fail(k->err, DT_EINPUT, "%s: mlp_only_layers: expected layers from 0 to %d", k->path, layers - 1);
    c->dense[layer] = true;
  }
  return DT_OK;
}

dt_status config_cap(const keys *k, const char *name, double absent, float *out) {
  double cap = 0;
  if (!cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(k->json, name))) {
    dt_status status = config_number(k, name, name, absent, 0, 1e9, &cap);
    if (status) return status;
  }
  *out = (float)cap;
  return DT_OK;
}

dt_status config_window(const keys *k, const char *use, bool windowed, config *c) {
  bool active = windowed || k->gguf;
  int window = 0;
  dt_status status = use && !k->gguf ? config_bool(k, use, NULL, false, &active) : DT_OK;
  const cJSON *types = get(k->json, "layer_types");
  if (cJSON_IsArray(types)) active = false;
  for (const cJSON *item = cJSON_IsArray(types) ? types->child : NULL; item; item = item->next) {
    bool local;
    if (!says_local(item, &local))
      return dt_fail(k->err, DT_EINPUT, "%s: layer_types: expected \"sliding_attention\" or \"full_attention\"",
                     k->path);
    active |= local;
  }
  if (!status && active) status = read_window(k, 0, &window);
  if (!status && window >= 1 && window < c->shape.context) c->shape.window = c->shape.context = window;
  return status;
}

/* Whether a word is in a list of words separated by spaces. */
static bool is_among(const char *word, const char *list) {
  size_t len = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at += len)
    if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len])) return true;
  return false;
}

dt_status config_refuse_others(const keys *k, const char *takes) {
  static const struct {
    const char *hf, *gguf;
    double neutral;
    const char *what;
  } others[] = {{"num_local_experts|num_experts|n_routed_experts", "expert_count", 0, "a mixture of experts"},
                {"n_shared_experts|shared_expert_intermediate_size",
                 "expert_shared_count|expert_shared_feed_forward_length", 0, "a shared expert"},
                {NULL, "expert_weights_scale", 1, "a scale for experts"},
                {NULL, "expert_gating_func", 1, "a router without softmax"},
                {"attn_logit_softcapping", "attn_logit_softcapping", 0, "a cap on attention"},
                {"final_logit_softcapping", "final_logit_softcapping", 0, "a cap on logits"},
                {NULL, "logit_scale", 1, "a scale for logits"},
                {NULL, "residual_scale", 1, "a scale for the residual stream"},
                {NULL, "embedding_scale", 1, "a scale for embeddings"},
                {NULL, "attention.scale", 0, "a special attention scale"},
                {NULL, "rope.scaling.attn_factor", 1, "a scale for the rotation"},
                {NULL, "rope.scaling.yarn_ext_factor", 1, "a special extrapolation"},
                {NULL, "rope.scaling.yarn_log_multiplier", 0, "a scale for the rotation"}};
  const char *method = config_text(k, "quantization_config.quant_method", NULL);
  if (get(k->json, "quantization_config") && !(*method && is_among(method, takes)))
    return dt_fail(
        k->err, DT_EINPUT,
        "%s: quantization_config: weights in another tool's format are not supported; supported: F32, F16 and "
        "BF16 weights, or a GGUF file",
        k->path);
  if (get(k->json, "vision_config") && !is_among("vision_config", takes))
    return dt_fail(k->err, DT_EINPUT, "%s: vision_config: models that read images are not supported, only text models",
                   k->path);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    found f = find_key(k, others[i].hf, others[i].gguf);
    for (int j = 0; j < f.n; j++)
      if (!is_among(f.name[j], takes) &&
          (!cJSON_IsNumber(f.item[j]) || (f.item[j]->valuedouble != others[i].neutral && f.item[j]->valuedouble != 0)))
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

dt_status config_text_part(const keys *k, const char *takes, keys *text) {
  *text = *k;
  text->json = get(k->json, "text_config");
  if (!cJSON_IsObject(text->json)) return dt_fail(k->err, DT_EINPUT, "%s: text_config: expected an object", k->path);
  return config_refuse_others(text, takes);
}

dt_status config_leave_further(const keys *k, config *c) {
  int most = k->gguf ? c->shape.layers - 1 : CONFIG_MAX_LAYERS;
  dt_status status =
      config_count(k, "mtp_num_hidden_layers|num_nextn_predict_layers", "nextn_predict_layers", 0, most, &c->further);
  if (k->gguf) c->shape.layers -= c->further;
  return status;
}

dt_layer config_layer(const config *c, int i) {
  return (dt_layer){.window = c->local[i] ? c->window : 0,
                    .still = c->still[i],
                    .delta = c->delta[i],
                    .kv_heads = c->kv_heads[i],
                    .head_dim = c->head_dim[i],
                    .inter = c->inter[i],
                    .keys_of = c->keys_of[i]};
}
