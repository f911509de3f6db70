/* Model families are told apart here and nowhere else: each has one function that finds its tensors by name, checks their
 * shapes against the configuration and lays views of them into the canonical layers. See model.h. */
#include "model.h"

#include "config.h"
#include "safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct model {
  dt_model_desc desc;
  dt_layer *layer;
  float *inv_freq;
  st *weights;
  int32_t eos[MODEL_MAX_EOS];
  int n_eos;
};

_Static_assert(MODEL_MAX_EOS == CONFIG_MAX_EOS, "config's list is copied whole");

/* What finding a tensor needs. A failure is kept in status and makes later calls do nothing, so that a family's list of
 * tensors reads as a list. */
typedef struct {
  const char *folder;
  const st *weights;
  dt_error *err;
  dt_status status;
  const char *prefix; /* before every name but the unembedding's */
} finder;

static bool usable(const st_tensor *t, dt_dtype *dtype) {
  static const char *const name[] = {[DT_F32] = "F32", [DT_F16] = "F16", [DT_BF16] = "BF16"};
  for (int i = 0; i < 3; i++) {
    if (strcmp(t->dtype, name[i])) continue;
    *dtype = (dt_dtype)i;
    return true;
  }
  return false;
}

/* The tensor called prefix + name, which must have this shape; cols = 0: a vector. */
static dt_matrix find(finder *f, int rows, int cols, const char *format, ...) __attribute__((format(printf, 4, 5)));

static dt_matrix find(finder *f, int rows, int cols, const char *format, ...) {
  dt_matrix none = {0};
  if (f->status != DT_OK) return none;
  char name[160];
  int used = snprintf(name, sizeof name, "%s", f->prefix);
  va_list args;
  va_start(args, format);
  vsnprintf(name + used, sizeof name - (size_t)used, format, args);
  va_end(args);

  const st_tensor *t = st_find(f->weights, name);
  if (!t) {
    f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s is missing", f->folder, name);
    return none;
  }
  uint64_t want[2] = {(uint64_t)rows, (uint64_t)cols};
  int rank = cols ? 2 : 1;
  if (t->rank != rank || memcmp(t->shape, want, (size_t)rank * sizeof *want)) {
    char is[128], should[64];
    f->status =
        dt_fail(f->err, DT_EINPUT, "%s: tensor %s: found shape %s, expected %s by config.json", t->file, name,
                st_shape_text(t->shape, t->rank, is, sizeof is), st_shape_text(want, rank, should, sizeof should));
    return none;
  }
  dt_matrix m = {.data = t->data, .rows = rows, .cols = cols ? cols : 1, .group = rows, .stride = rows};
  if (!usable(t, &m.dtype)) {
    f->status =
        dt_fail(f->err, DT_EINPUT, "%s: tensor %s: found type %s, expected F32, F16 or BF16", t->file, name, t->dtype);
    return none;
  }
  return m;
}

/* Part p (of `parts`) of a fused matrix whose rows go [head][part][head_dim]. */
static dt_matrix interleaved(dt_matrix fused, int parts, int p, int head_dim) {
  if (!fused.data) return fused;
  size_t element = fused.dtype == DT_F32 ? 4 : 2;
  fused.data = (const char *)fused.data + (size_t)p * (size_t)head_dim * (size_t)fused.cols * element;
  fused.rows /= parts;
  fused.group = head_dim;
  fused.stride = parts * head_dim;
  return fused;
}

static void find_gpt_neox(finder *f, const config *c, dt_model_desc *d, dt_layer *layers) {
  int H = c->hidden, I = c->inter, hd = c->head_dim;
  f->prefix = st_find(f->weights, "embed_in.weight") ? "" : "gpt_neox.";
  d->embed = find(f, c->vocab, H, "embed_in.weight");
  for (int i = 0; i < c->layers && f->status == DT_OK; i++) {
    dt_layer *l = &layers[i];
    l->norm1 = find(f, H, 0, "layers.%d.input_layernorm.weight", i);
    l->norm1_bias = find(f, H, 0, "layers.%d.input_layernorm.bias", i);
    l->norm2 = find(f, H, 0, "layers.%d.post_attention_layernorm.weight", i);
    l->norm2_bias = find(f, H, 0, "layers.%d.post_attention_layernorm.bias", i);
    dt_matrix qkv = find(f, 3 * H, H, "layers.%d.attention.query_key_value.weight", i);
    l->q = interleaved(qkv, 3, 0, hd);
    l->k = interleaved(qkv, 3, 1, hd);
    l->v = interleaved(qkv, 3, 2, hd);
    l->o = find(f, H, H, "layers.%d.attention.dense.weight", i);
    if (c->attention_bias) {
      qkv = find(f, 3 * H, 0, "layers.%d.attention.query_key_value.bias", i);
      l->q_bias = interleaved(qkv, 3, 0, hd);
      l->k_bias = interleaved(qkv, 3, 1, hd);
      l->v_bias = interleaved(qkv, 3, 2, hd);
      l->o_bias = find(f, H, 0, "layers.%d.attention.dense.bias", i);
    }
    l->up = find(f, I, H, "layers.%d.mlp.dense_h_to_4h.weight", i);
    l->up_bias = find(f, I, 0, "layers.%d.mlp.dense_h_to_4h.bias", i);
    l->down = find(f, H, I, "layers.%d.mlp.dense_4h_to_h.weight", i);
    l->down_bias = find(f, H, 0, "layers.%d.mlp.dense_4h_to_h.bias", i);
  }
  d->final_norm = find(f, H, 0, "final_layer_norm.weight");
  d->final_norm_bias = find(f, H, 0, "final_layer_norm.bias");
  f->prefix = "";
  const char *head =
      st_find(f->weights, "lm_head.weight") ? "lm_head.weight" : "embed_out.weight"; /* both are in use */
  bool own = st_find(f->weights, head) || !c->tied;
  d->unembed = own ? find(f, c->vocab, H, "%s", head) : d->embed;
}

/* transformers: 1.0 / (base ** (arange(0, dims, 2) / dims)) in f32. The power is taken in double and rounded once, which
 * is the same f32 with any libm. */
static void fill_inv_freq(const config *c, float *inv_freq) {
  for (int j = 0; j < c->rotary_dims / 2; j++) {
    float exponent = (float)(2 * j) / (float)c->rotary_dims;
    inv_freq[j] = 1.0f / (float)pow((float)c->rotary_base, exponent);
  }
}

static dt_status check_folder(const char *folder, dt_error *err) {
  struct stat info;
  if (stat(folder, &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return dt_fail(err, DT_EINPUT, "no such folder: %s", folder);
    return dt_fail(err, errno == ENAMETOOLONG ? DT_EINPUT : DT_EIO, "%.200s: %s", folder, strerror(errno));
  }
  if (!S_ISDIR(info.st_mode)) return dt_fail(err, DT_EINPUT, "%s: expected a model's folder, found a file", folder);
  return DT_OK;
}

static dt_status read_config(const char *folder, config *c, dt_error *err) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s/config.json", folder) >= sizeof path)
    return dt_fail(err, DT_EINPUT, "%.100s..: the folder's name is too long", folder);
  if (access(path, F_OK) != 0) return dt_fail(err, DT_EINPUT, "no config.json in %s", folder);
  return config_read(path, c, err);
}

static void forget(void *owner) { st_forget(((model *)owner)->weights); }

static dt_status fill(model *m, const char *folder, const config *c, dt_error *err) {
  m->layer = calloc((size_t)c->layers, sizeof *m->layer);
  m->inv_freq = calloc((size_t)c->rotary_dims / 2 + 1, sizeof *m->inv_freq);
  if (!m->layer || !m->inv_freq) return dt_fail_memory(err, "a model's layers", (size_t)c->layers * sizeof *m->layer);
  fill_inv_freq(c, m->inv_freq);
  m->desc = (dt_model_desc){.vocab = c->vocab,
                            .hidden = c->hidden,
                            .layers = c->layers,
                            .heads = c->heads,
                            .kv_heads = c->kv_heads,
                            .head_dim = c->head_dim,
                            .inter = c->inter,
                            .context = c->context,
                            .rotary_dims = c->rotary_dims,
                            .inv_freq = m->inv_freq,
                            .norm_eps = (float)c->norm_eps,
                            .norm = c->norm,
                            .act = c->act,
                            .parallel_residual = c->parallel_residual,
                            .layer = m->layer,
                            .forget = forget,
                            .owner = m};
  memcpy(m->eos, c->eos, sizeof m->eos);
  m->n_eos = c->n_eos;
  dt_status status = st_open_folder(folder, &m->weights, err);
  if (status != DT_OK) return status;
  finder f = {.folder = folder, .weights = m->weights, .err = err, .status = DT_OK, .prefix = ""};
  switch (c->family) {
  case CONFIG_GPT_NEOX: find_gpt_neox(&f, c, &m->desc, m->layer); break;
  }
  return f.status;
}

dt_status model_open(const char *folder, model **out, dt_error *err) {
  config c;
  dt_status status = check_folder(folder, err);
  if (status == DT_OK) status = read_config(folder, &c, err);
  if (status != DT_OK) return status;
  model *m = calloc(1, sizeof *m);
  if (!m) return dt_fail_memory(err, "a model", sizeof *m);
  status = fill(m, folder, &c, err);
  if (status != DT_OK) {
    model_close(m);
    return status;
  }
  *out = m;
  return DT_OK;
}

void model_close(model *m) {
  if (!m) return;
  st_close(m->weights);
  free(m->inv_freq);
  free(m->layer);
  free(m);
}

const dt_model_desc *model_desc(const model *m) { return &m->desc; }

int model_eos(const model *m, int32_t eos[MODEL_MAX_EOS]) {
  memcpy(eos, m->eos, (size_t)m->n_eos * sizeof *eos);
  return m->n_eos;
}
