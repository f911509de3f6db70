/* Reads how heads rotate: see config.h. */
#include "model/config.h"
#include "system/min_max.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The objects that can contain a rotation's keys in Hugging Face's files. A GGUF file has one set of keys, which
 * belongs to the first of these. */
typedef const char *const rotation_objects[4];
static rotation_objects global_objects = {"rope_scaling", "rope_parameters", "rope_parameters.full_attention", NULL};
static rotation_objects local_objects = {"rope_parameters.sliding_attention", NULL};

/* The rotation of one kind of layers, while it is read. */
typedef struct {
  const keys *k;
  const char *const *in;
  config *c;
  rotation *r;
} reading;

/* ---- its type ---------------------------------------------------------------------------------------------------- */

static config_key key_in(const cJSON *object, const char *name) {
  return config_find(&(keys){.json = object}, name, NULL);
}

/* Whether the object has one object for each kind of layer instead of keys. */
static bool is_of_kinds(const cJSON *rope) {
  return cJSON_IsObject(key_in(rope, "full_attention").item) || cJSON_IsObject(key_in(rope, "sliding_attention").item);
}

/* The type of the rotation, "" if none is named, and the key that names it. */
static dt_status find_type(const reading *g, const char **type, const char **where) {
  const keys *k = g->k;
  *type = g->in == global_objects ? config_text(k, NULL, "rope.scaling.type") : "", *where = "rope.scaling";
  for (int i = 0; g->in[i] && !k->gguf; i++) {
    const char *object = g->in[i];
    const cJSON *rope = key_in(k->json, object).item;
    if (!rope || is_of_kinds(rope)) continue;
    if (!cJSON_IsObject(rope)) return dt_fail(k->err, DT_EINPUT, "%s: %s: expected an object or null", k->path, object);
    const cJSON *item = key_in(rope, "rope_type|type").item;
    bool old = !strcmp(object, "rope_scaling"); /* this object always has a type */
    const char *name = cJSON_IsString(item) ? item->valuestring : item || old ? "(none)" : "default";
    if (**type && strcmp(*type, name))
      return dt_fail(k->err, DT_EINPUT, "%s: %s of type \"%.60s\" but %s of \"%.60s\", expected the same", k->path,
                     *where, *type, object, name);
    *type = name, *where = object;
  }
  return DT_OK;
}

/* ---- its numbers ------------------------------------------------------------------------------------------------- */

/* The spellings of a key in each of the objects, and a further one. */
typedef struct {
  char text[4 * CONFIG_SPELLING];
} spellings;

static spellings in_objects(const reading *g, const char *name) {
  spellings s = {""};
  for (size_t i = 0, used = 0; g->in[i] && used < sizeof s.text; i++)
    used += (size_t)snprintf(s.text + used, sizeof s.text - used, "%s%s.%s", i ? "|" : "", g->in[i], name);
  return s;
}

/* The same, and the key outside of them. */
static spellings anywhere(const reading *g, const char *name) {
  spellings s = in_objects(g, name);
  size_t used = strlen(s.text);
  snprintf(s.text + used, sizeof s.text - used, "|%s", name);
  return s;
}

static dt_status number(const reading *g, const char *name, const char *gguf, double absent, double min, double max,
                        double *out) {
  return config_number(g->k, in_objects(g, name).text, gguf, absent, min, max, out);
}

/* Reads a number that may not be missing. */
static dt_status required(const reading *g, spellings hf, const char *gguf, double min, double max, double *out) {
  config_key key = config_find(g->k, hf.text, gguf);
  if (!key.item) return dt_fail(g->k->err, DT_EINPUT, "%s: %s is missing", g->k->path, key.name);
  return config_number(g->k, hf.text, gguf, 0, min, max, out);
}

#define ORIGINAL "original_max_position_embeddings"
#define ORIGINAL_IN_GGUF "rope.scaling.original_context_length"

static dt_status read_original(const reading *g, const char *gguf, double *out) {
  return required(g, in_objects(g, ORIGINAL), gguf, 1, CONFIG_MAX_SIZE, out);
}

/* The scaling allows this many positions. That of layers with a window does not limit the others. */
static void grow_context(const reading *g, double positions) {
  int *context = &g->c->shape.context;
  if (g->in == global_objects) *context = dt_max(*context, (int)fmin(positions, CONFIG_MAX_SIZE));
}

/* The rotation depends on the number of positions: decides it for all texts, so that a row's keys depend only on the
 * row. */
static void fix_context(const reading *g) {
  int asked = g->k->rope.context > 0 ? g->k->rope.context : DT_CONTEXT;
  g->r->context = g->c->shape.context = dt_min(g->c->shape.context, asked);
}

/* ---- its types --------------------------------------------------------------------------------------------------- */

static dt_status read_llama3(const reading *g) {
  rotation *r = g->r;
  dt_status status = required(g, in_objects(g, "low_freq_factor"), NULL, 1e-3, 1e6, &r->low);
  if (!status) status = required(g, in_objects(g, "high_freq_factor"), NULL, 1e-3, 1e6, &r->high);
  if (!status) status = read_original(g, NULL, &r->original);
  if (!status && r->low >= r->high)
    status = dt_fail(g->k->err, DT_EINPUT, "%s: low_freq_factor is %g, expected less than high_freq_factor, %g",
                     g->k->path, r->low, r->high);
  return status;
}

static double yarn_scale(double factor, double by) { return 0.1 * by * log(factor) + 1; }

/* A YaRN whose numbers are set: checks its base. */
static dt_status end_yarn(const reading *g) {
  g->r->yarn = true;
  if (g->r->base <= 1)
    return dt_fail(g->k->err, DT_EINPUT, "%s: the base of the rotation is %g, expected more than 1 with yarn",
                   g->k->path, g->r->base);
  grow_context(g, g->r->factor * g->r->original);
  return DT_OK;
}

/* Defaults, and the scale of cosines and sines, as in transformers. */
static dt_status read_yarn(const reading *g) {
  const keys *k = g->k;
  rotation *r = g->r;
  double by = 0, by_all = 0;
  dt_status status = read_original(g, ORIGINAL_IN_GGUF, &r->original);
  if (!status) status = number(g, "beta_slow", "rope.scaling.yarn_beta_slow", 1, 1e-3, 1e6, &r->low);
  if (!status) status = number(g, "beta_fast", "rope.scaling.yarn_beta_fast", 32, 1e-3, 1e6, &r->high);
  if (!status) status = config_bool(k, in_objects(g, "truncate").text, NULL, true, &r->whole);
  if (!status) status = number(g, "mscale", NULL, 0, 0, 1e6, &by);
  if (!status) status = number(g, "mscale_all_dim", NULL, 0, 0, 1e6, &by_all);
  double usual =
      by > 0 && by_all > 0 ? yarn_scale(r->factor, by) / yarn_scale(r->factor, by_all) : yarn_scale(r->factor, 1);
  if (!status) status = number(g, "attention_factor", "rope.scaling.yarn_attn_factor", usual, 1e-3, 1e6, &r->scale);
  if (!status && r->low > r->high)
    status =
        dt_fail(k->err, DT_EINPUT, "%s: beta_slow is %g, expected at most beta_fast, %g", k->path, r->low, r->high);
  return status ? status : end_yarn(g);
}

static dt_status read_proportional(const reading *g) {
  dt_status status = number(g, "factor", NULL, 1, 1, 1e6, &g->r->factor);
  return status ? status : number(g, "partial_rotary_factor", NULL, 1, 0, 1, &g->r->part);
}

/* The factor that was read stretches the base instead of positions, and only for texts longer than the model's. */
static void set_dynamic(const reading *g) {
  double factor = g->r->factor, trained = g->c->shape.context;
  g->r->factor = 1;
  grow_context(g, factor * trained);
  fix_context(g);
  if (g->r->context > trained) g->r->growth = factor * g->r->context / trained - (factor - 1);
}

/* The scale of cosines and sines in Hugging Face's files. Phi-3.5-MoE's have one for each of the two lists. */
static dt_status read_longrope_scale(const reading *g, double context, bool is_long) {
  double factor = 0, usual = 1;
  dt_status status = number(g, "factor", NULL, context / g->r->original, 1e-6, 1e6, &factor);
  if (factor > 1) usual = sqrt(1 + log(factor) / log(g->r->original));
  if (!status) status = number(g, is_long ? "long_mscale" : "short_mscale", NULL, usual, 1e-3, 1e6, &usual);
  return status ? status : number(g, "attention_factor", NULL, usual, 1e-3, 1e6, &g->r->scale);
}

/* Files list two numbers for each pair, for texts up to the original length and for longer ones. */
static dt_status read_longrope(const reading *g) {
  const keys *k = g->k;
  rotation *r = g->r;
  double context = g->c->shape.context;
  dt_status status = required(g, anywhere(g, ORIGINAL), ORIGINAL_IN_GGUF, 2, CONFIG_MAX_SIZE, &r->original);
  if (status) return status;
  fix_context(g);
  bool is_long = r->context > r->original;
  r->each = !k->gguf;
  if (k->gguf) r->tensor = is_long ? ROTATION_LONG : ROTATION_SHORT;
  if (!k->gguf) status = read_longrope_scale(g, context, is_long);
  if (r->scale == 1) r->scale = 0;
  return status;
}

/* ---- options that replace the scaling in the files --------------------------------------------------------------- */

static dt_status check_option(const keys *k) {
  static const char *const known[] = {"none", "linear", "dynamic", "yarn"};
  const dt_rope *o = &k->rope;
  bool is = !o->scaling, none = o->scaling && !strcmp(o->scaling, "none");
  for (size_t i = 0; o->scaling && i < sizeof known / sizeof *known; i++) is |= !strcmp(o->scaling, known[i]);
  if (!is)
    return dt_fail(k->err, DT_EINPUT, "rope_scaling: '%.40s' is not supported; supported: none, linear, dynamic, yarn",
                   o->scaling);
  if (o->scale != 0 && (!o->scaling || none))
    return dt_fail(k->err, DT_EINPUT, "rope_scale: %g has no effect without rope_scaling linear, dynamic or yarn",
                   (double)o->scale);
  if (o->original != 0 && (!o->scaling || strcmp(o->scaling, "yarn") != 0))
    return dt_fail(k->err, DT_EINPUT, "yarn_orig_ctx: %d has no effect without rope_scaling yarn", o->original);
  if (o->scaling && !none && o->scale == 0)
    return dt_fail(k->err, DT_EINPUT, "rope_scaling: %s needs rope_scale, such as 4 for a context of four times",
                   o->scaling);
  if (o->scale != 0 && !(o->scale >= 1 && o->scale <= 1e6f))
    return dt_fail(k->err, DT_EINPUT, "rope_scale: %g is out of range: 1 to 1e+06", (double)o->scale);
  if (o->original < 0 || o->original > CONFIG_MAX_SIZE)
    return dt_fail(k->err, DT_EINPUT, "yarn_orig_ctx: %d is out of range: 1 to %d", o->original, CONFIG_MAX_SIZE);
  return DT_OK;
}

/* YaRN with the numbers that transformers uses if config.json names none. */
static dt_status take_yarn(const reading *g) {
  rotation *r = g->r;
  r->low = 1, r->high = 32, r->whole = true, r->scale = yarn_scale(r->factor, 1), r->original = g->k->rope.original;
  dt_status status = DT_OK;
  if (!g->k->rope.original)
    status = number(g, ORIGINAL, ORIGINAL_IN_GGUF, g->c->shape.context, 1, CONFIG_MAX_SIZE, &r->original);
  return status ? status : end_yarn(g);
}

static dt_status take_option(const reading *g) {
  const dt_rope *o = &g->k->rope;
  g->r->replaced = true;
  if (!strcmp(o->scaling, "none")) return DT_OK;
  g->r->factor = (double)o->scale;
  if (!strcmp(o->scaling, "yarn")) return take_yarn(g);
  if (!strcmp(o->scaling, "dynamic"))
    set_dynamic(g);
  else
    grow_context(g, g->r->factor * g->c->shape.context);
  return DT_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Explains a rotation type that is not supported. */
static const char *explain(const char *type) { return strcmp(type, "mrope") ? "" : " (positions in images)"; }

static dt_status read_type(const reading *g) {
  const keys *k = g->k;
  const char *type = "", *where = "";
  dt_status status = find_type(g, &type, &where);
  if (status) return status;
  bool global = g->in == global_objects, yarn = !strcmp(type, "yarn"), linear = !strcmp(type, "linear");
  bool plain = !*type || !strcmp(type, k->gguf ? "none" : "default"), llama3 = !k->gguf && !strcmp(type, "llama3");
  bool proportional = !k->gguf && !strcmp(type, "proportional");
  bool dynamic = global && !k->gguf && !strcmp(type, "dynamic");
  /* Phi-3's first files call longrope su or yarn, and older GGUF files do not name it. */
  bool longrope = global && (!strcmp(type, "longrope") || (!k->gguf && !strcmp(type, "su")) || (plain && k->factors) ||
                             (yarn && config_find(k, in_objects(g, "long_factor").text, NULL).item));
  if (longrope) return read_longrope(g);
  if (!plain && !linear && !llama3 && !yarn && !proportional && !dynamic)
    return dt_fail(k->err, DT_EINPUT, "%s: %s of type \"%.60s\"%s is not supported; supported: %s", k->path, where,
                   type, explain(type),
                   k->gguf  ? "none, linear, yarn, longrope"
                   : global ? "default, linear, dynamic, llama3, yarn, longrope, proportional, or null"
                            : "default, linear, llama3, yarn, proportional, or null");
  if (proportional) return read_proportional(g);
  if (!plain) status = required(g, in_objects(g, "factor"), "rope.scaling.factor", 1, 1e6, &g->r->factor);
  if (!status && llama3) status = read_llama3(g);
  if (!status && yarn) status = read_yarn(g);
  if (!status && dynamic) set_dynamic(g);
  return status;
}

/* A GGUF file may have a further scale of cosines and sines; 0 stands for 1. */
static dt_status read_further_scale(const reading *g) {
  double by = 1;
  dt_status status = config_number(g->k, NULL, "rope.scaling.attn_factor", 1, 0, 1e6, &by);
  if (by != 0 && by != 1) g->r->scale = by * (g->r->scale > 0 ? g->r->scale : 1);
  return status;
}

dt_status config_rotation(const keys *k, const char *base, double usual, config *c) {
  reading g = {k, global_objects, c, &c->rotation};
  c->rotation = (rotation){.factor = 1, .part = 1};
  dt_status status = check_option(k);
  if (!status) status = config_number(k, base, "rope.freq_base", usual, 1e-3, 1e30, &c->rotation.base);
  if (status) return status;
  if (k->rope.scaling) return take_option(&g);
  status = read_type(&g);
  return status ? status : read_further_scale(&g);
}

/* Reads a list of longrope's numbers. Both lists are checked, but only one is used. */
static dt_status read_pairs(const reading *g, const char *name, int pairs, float *out) {
  config_key key = config_find(g->k, in_objects(g, name).text, NULL);
  if (!key.item) return dt_fail(g->k->err, DT_EINPUT, "%s: %s is missing", g->k->path, key.name);
  int listed = cJSON_IsArray(key.item) ? cJSON_GetArraySize(key.item) : 0, j = 0;
  if (listed != pairs)
    return dt_fail(g->k->err, DT_EINPUT, "%s: %s: found %d elements, expected one for each of %d rotary pairs",
                   g->k->path, key.name, listed, pairs);
  for (const cJSON *item = key.item->child; item; item = item->next, j++) {
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value >= (double)ROTATION_LEAST && value <= (double)ROTATION_MOST))
      return dt_fail(g->k->err, DT_EINPUT, "%s: %s: element %d: expected a number from %g to %g", g->k->path, key.name,
                     j, (double)ROTATION_LEAST, (double)ROTATION_MOST);
    out[j] = (float)value;
  }
  return DT_OK;
}

dt_status config_pairs(const keys *k, config *c) {
  rotation *r = &c->rotation;
  const reading g = {k, global_objects, c, r};
  int pairs = c->shape.rotary_dims / 2;
  if (!r->each) return DT_OK;
  if (pairs > ROTATION_PAIRS)
    return dt_fail(k->err, DT_EINPUT, "%s: a rotation of type longrope of %d pairs, expected at most %d", k->path,
                   pairs, ROTATION_PAIRS);
  const char *const lists[] = {"short_factor", "long_factor"};
  bool is_long = r->context > r->original;
  dt_status status = read_pairs(&g, lists[!is_long], pairs, r->by);
  return status ? status : read_pairs(&g, lists[is_long], pairs, r->by);
}

dt_status config_local_rotation(const keys *k, const char *base, double usual, config *c) {
  const reading g = {k, local_objects, c, &c->local_rotation};
  c->local_rotation = (rotation){.factor = 1, .part = 1};
  dt_status status = config_number(k, base, "rope.freq_base_swa", usual, 1e-3, 1e30, &c->local_rotation.base);
  return status ? status : read_type(&g);
}
