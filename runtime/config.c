/* One parser per family; to add one, write it and list it in families[]. See config.h. */
#include "config.h"

#include "json_file.h"

#include <math.h>
#include <string.h>

#define MAX_SIZE (1 << 24) /* vocabulary, widths, context */
#define MAX_LAYERS (1 << 12)

/* The file being read: what messages need. */
typedef struct {
  const char *path;
  const cJSON *json;
  dt_error *err;
} reader;

/* A key that is absent or null is NULL: Hugging Face treats both as "the default". */
static const cJSON *get(const cJSON *json, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNull(item) ? NULL : item;
}

static dt_status read_int(const reader *r, const char *key, int max, int *out) {
  const cJSON *item = get(r->json, key);
  if (!item) return dt_fail(r->err, DT_EINPUT, "%s: %s is missing", r->path, key);
  double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
  if (!(value >= 1 && value <= max) || value != floor(value))
    return dt_fail(r->err, DT_EINPUT, "%s: %s: expected a whole number from 1 to %d", r->path, key, max);
  *out = (int)value;
  return DT_OK;
}

static dt_status read_bool(const reader *r, const char *key, bool absent, bool *out) {
  const cJSON *item = get(r->json, key);
  if (item && !cJSON_IsBool(item)) return dt_fail(r->err, DT_EINPUT, "%s: %s: expected true or false", r->path, key);
  *out = item ? cJSON_IsTrue(item) : absent;
  return DT_OK;
}

/* A number with up to two spellings at the top and one in rope_parameters; spellings that are present must agree. */
static dt_status read_number(const reader *r, const char *const key[2], const char *rope_key, double absent, double min,
                             double max, double *out) {
  const cJSON *rope = get(r->json, "rope_parameters");
  const cJSON *item[3] = {key[0] ? get(r->json, key[0]) : NULL, key[1] ? get(r->json, key[1]) : NULL,
                          rope_key ? get(rope, rope_key) : NULL};
  const char *name[3] = {key[0], key[1], rope_key};
  int chosen = -1;
  for (int i = 0; i < 3; i++) {
    if (!item[i]) continue;
    double value = cJSON_IsNumber(item[i]) ? item[i]->valuedouble : NAN;
    if (!(value >= min && value <= max))
      return dt_fail(r->err, DT_EINPUT, "%s: %s: expected a number from %g to %g", r->path, name[i], min, max);
    if (chosen >= 0 && value != item[chosen]->valuedouble)
      return dt_fail(r->err, DT_EINPUT, "%s: %s is %g but %s is %g, expected the same value", r->path, name[chosen],
                     item[chosen]->valuedouble, i == 2 ? "rope_parameters" : name[i], value);
    chosen = i;
  }
  *out = chosen >= 0 ? item[chosen]->valuedouble : absent;
  return DT_OK;
}

/* rope_scaling and rope_parameters may say that positions are stretched; only plain rotation is supported. */
static dt_status check_rope_type(const reader *r) {
  static const char *const key[] = {"rope_scaling", "rope_parameters"};
  for (int i = 0; i < 2; i++) {
    const cJSON *rope = get(r->json, key[i]);
    if (!rope) continue;
    if (!cJSON_IsObject(rope)) return dt_fail(r->err, DT_EINPUT, "%s: %s: expected an object or null", r->path, key[i]);
    const cJSON *type = get(rope, "rope_type");
    if (!type) type = get(rope, "type");
    const char *name = cJSON_IsString(type) ? type->valuestring : type || i == 0 ? "(none)" : "default";
    if (strcmp(name, "default"))
      return dt_fail(r->err, DT_EINPUT, "%s: %s of type \"%.60s\" is not supported; supported: \"default\", or null",
                     r->path, key[i], name);
  }
  return DT_OK;
}

static dt_status read_act(const reader *r, const char *key, const char *absent, dt_act_kind *out) {
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
  const cJSON *item = get(r->json, key);
  const char *name = !item ? absent : cJSON_IsString(item) ? item->valuestring : "(not a string)";
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name)) continue;
    *out = known[i].act;
    return DT_OK;
  }
  return dt_fail(r->err, DT_EINPUT,
                 "%s: %s \"%.60s\" is not supported; supported: gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, silu",
                 r->path, key, name);
}

/* A token id, a list of them, or null. */
static dt_status read_eos(const reader *r, config *c) {
  const cJSON *item = get(r->json, "eos_token_id");
  if (!item) return DT_OK;
  for (const cJSON *id = cJSON_IsArray(item) ? item->child : item; id; id = cJSON_IsArray(item) ? id->next : NULL) {
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < MAX_SIZE) ||
        id->valuedouble != floor(id->valuedouble))
      return dt_fail(r->err, DT_EINPUT, "%s: eos_token_id: expected a token id, a list of them, or null", r->path);
    if (c->n_eos == CONFIG_MAX_EOS)
      return dt_fail(r->err, DT_EINPUT, "%s: eos_token_id: expected at most %d ids", r->path, CONFIG_MAX_EOS);
    c->eos[c->n_eos++] = (int32_t)id->valuedouble;
  }
  return DT_OK;
}

/* Keys and defaults: facts of transformers' GPTNeoXConfig, all versions. */
static dt_status read_gpt_neox(const reader *r, config *c) {
  static const char *const base_keys[2] = {"rotary_emb_base", "rope_theta"};
  static const char *const part_keys[2] = {"rotary_pct", "partial_rotary_factor"};
  static const char *const eps_keys[2] = {"layer_norm_eps"};
  double part = 0;
  dt_status s = DT_OK;
  c->norm = DT_NORM_LAYER;
  if (!s) s = read_int(r, "vocab_size", MAX_SIZE, &c->vocab);
  if (!s) s = read_int(r, "hidden_size", MAX_SIZE, &c->hidden);
  if (!s) s = read_int(r, "num_hidden_layers", MAX_LAYERS, &c->layers);
  if (!s) s = read_int(r, "num_attention_heads", MAX_SIZE, &c->heads);
  if (!s) s = read_int(r, "intermediate_size", MAX_SIZE, &c->inter);
  if (!s) s = read_int(r, "max_position_embeddings", MAX_SIZE, &c->context);
  if (!s) s = read_act(r, "hidden_act", "gelu", &c->act);
  if (!s) s = read_number(r, eps_keys, NULL, 1e-5, 0, 1, &c->norm_eps);
  if (!s) s = check_rope_type(r);
  if (!s) s = read_number(r, base_keys, "rope_theta", 10000, 1e-3, 1e30, &c->rotary_base);
  if (!s) s = read_number(r, part_keys, "partial_rotary_factor", 0.25, 0, 1, &part);
  if (!s) s = read_bool(r, "use_parallel_residual", true, &c->parallel_residual);
  if (!s) s = read_bool(r, "attention_bias", true, &c->attention_bias);
  if (!s) s = read_bool(r, "tie_word_embeddings", false, &c->tied);
  if (!s) s = read_eos(r, c);
  if (s) return s;
  if (c->hidden % c->heads)
    return dt_fail(r->err, DT_EINPUT, "%s: hidden_size %d, expected a multiple of num_attention_heads %d", r->path,
                   c->hidden, c->heads);
  c->kv_heads = c->heads;
  c->head_dim = c->hidden / c->heads;
  c->rotary_dims = (int)(c->head_dim * part);
  if (c->rotary_dims % 2)
    return dt_fail(r->err, DT_EINPUT,
                   "%s: rotary_pct %g of head size %d gives %d rotary dimensions, expected an even number", r->path,
                   part, c->head_dim, c->rotary_dims);
  return DT_OK;
}

static const struct {
  config_family family;
  const char *model_type, *architecture;
  dt_status (*read)(const reader *, config *);
} families[] = {{CONFIG_GPT_NEOX, "gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox}};

#define N_FAMILIES ((int)(sizeof families / sizeof *families))
#define SUPPORTED "supported: \"gpt_neox\" (GPTNeoXForCausalLM)"

/* By model_type, or where that is absent by architectures[0]; when both are there they must agree. */
static dt_status find_family(const reader *r, int *out) {
  const cJSON *type = get(r->json, "model_type"), *list = get(r->json, "architectures");
  const cJSON *architecture = cJSON_IsArray(list) ? list->child : NULL;
  const char *a = cJSON_IsString(architecture) ? architecture->valuestring : NULL;
  const char *t = cJSON_IsString(type) ? type->valuestring : NULL;
  if (!t && !a) return dt_fail(r->err, DT_EINPUT, "%s: model_type is missing; " SUPPORTED, r->path);
  int i = 0;
  while (i < N_FAMILIES && strcmp(t ? t : a, t ? families[i].model_type : families[i].architecture)) i++;
  if (i == N_FAMILIES && t)
    return dt_fail(r->err, DT_EINPUT, "%s: model_type \"%.60s\" is not supported; " SUPPORTED, r->path, t);
  if (i == N_FAMILIES || (a && strcmp(a, families[i].architecture)))
    return dt_fail(r->err, DT_EINPUT, "%s: architecture \"%.60s\" is not supported; " SUPPORTED, r->path, a);
  *out = i;
  return DT_OK;
}

dt_status config_read(const char *path, config *out, dt_error *err) {
  cJSON *json;
  dt_status status = json_read_object(path, &json, err);
  if (status != DT_OK) return status;
  reader r = {path, json, err};
  config c = {0};
  int family = 0;
  status = find_family(&r, &family);
  c.family = families[family].family;
  if (status == DT_OK) status = families[family].read(&r, &c);
  cJSON_Delete(json);
  if (status == DT_OK) *out = c;
  return status;
}
