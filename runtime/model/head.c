/* Reads a head's files into its description: see head.h. */
#include "model/head_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- folders that are heads -------------------------------------------------------------------------------------- */

/* Whether a GGUF file is a head: its architecture has llama.cpp's name for one. */
static bool is_gguf_head(const checkpoint *c) {
  const char *name = cJSON_GetStringValue(head_item(c, "general.architecture"));
  return c->gguf && name && (!strcmp(name, "eagle3") || head_is_block(c));
}

static bool is_cross_attention(const checkpoint *c) {
  const char *type = cJSON_GetStringValue(head_item(c, "model_type"));
  return type && !strcmp(type, gemma4_assistant.model_type);
}

static bool says_head(const checkpoint *c) {
  static const char *const keys_of_heads[] = {"draft_vocab_size", "eagle_config", "speculators_model_type",
                                              "medusa_num_heads"};
  for (size_t i = 0; i < sizeof keys_of_heads / sizeof *keys_of_heads; i++)
    if (head_item(c, keys_of_heads[i])) return true;
  return is_cross_attention(c) || head_is_block(c) || head_is_called(c, "Eagle") || head_is_called(c, "EAGLE");
}

dt_status head_is(const char *path, bool *is, dt_error *err) {
  checkpoint c;
  dt_error why;
  *is = false;
  dt_status status = checkpoint_open(path, &c, &why);
  if (!status) {
    *is = c.gguf ? is_gguf_head(&c) : says_head(&c);
    if (!*is && !c.gguf && !(status = checkpoint_open_tensors(&c, &why)))
      *is = find_is_there(&(finder){.from = &c, .prefix = ""}, "fc.weight", NULL);
    checkpoint_close(&c);
  }
  return status == DT_ENOMEM ? dt_fail(err, status, "%s", why.message) : DT_OK;
}

/* ---- its configuration ------------------------------------------------------------------------------------------- */

static dt_status read_config(const checkpoint *files, const dt_shape *target, config *c, dt_error *err) {
  keys k;
  const family *of = NULL;
  dt_status status = head_keys_of_layer(files, target, &k, err);
  if (!status) status = family_of_head(&k, &of);
  if (!status) status = of->read(&k, c);
  if (!status && c->shape.layers != 1)
    status = dt_fail(err, DT_EINPUT,
                     "%s: num_hidden_layers is %d, expected 1: only draft heads with one layer are supported", k.path,
                     c->shape.layers);
  c->shape.turn_scale = (float)c->rotation.scale;
  return status;
}

/* ---- the streams that it reads ----------------------------------------------------------------------------------- */

/* The layers that the files list, up to one more than allowed; -1 replaces anything but a whole number. */
typedef struct {
  const char *where;
  int n, layer[DT_TAPS + 1];
} layer_list;

static int whole(double value) {
  return value >= 0 && value <= CONFIG_MAX_LAYERS && value == (int)value ? (int)value : -1;
}

static layer_list listed_in_gguf(const gguf *file) {
  layer_list list = {.where = "eagle3.target_layers"};
  const gguf_value *v = gguf_find(file, list.where);
  double value;
  for (; v && list.n <= DT_TAPS && (uint64_t)list.n < v->count; list.n++)
    list.layer[list.n] = gguf_number(v, (uint64_t)list.n, &value) ? whole(value) : -1;
  return list;
}

/* A null key counts as absent. */
static layer_list listed(const checkpoint *files) {
  layer_list list = {.where = "eagle_aux_hidden_state_layer_ids"};
  const cJSON *item = head_item(files, list.where);
  if (!item || cJSON_IsNull(item))
    item = cJSON_GetObjectItemCaseSensitive(head_item(files, "eagle_config"), list.where);
  if (!item || cJSON_IsNull(item)) return list;
  const cJSON *first = cJSON_IsArray(item) ? item->child : NULL;
  if (!first) list.layer[list.n++] = -1;
  for (const cJSON *i = first; i && list.n <= DT_TAPS; i = i->next)
    list.layer[list.n++] = cJSON_IsNumber(i) ? whole(i->valuedouble) : -1;
  return list;
}

/* Two conventions share one key: a list that begins with 1 names layers whose output is read; any other list names
 * layers whose input is read. */
static dt_status read_list(head *h, const dt_shape *target, const layer_list *list, dt_error *err) {
  int one_based = list->layer[0] == 1;
  for (int i = 0; i < list->n; i++) {
    int layer = list->layer[i] + one_based;
    if (list->layer[i] < 0 || layer > target->layers || i == DT_TAPS)
      return head_wrong_layers(h, target, list->where, err);
    h->desc.tap[h->desc.taps++] = layer;
  }
  return DT_OK;
}

static dt_status find_taps(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  if (layers) return head_read_layers(h, target, layers, err);
  layer_list list = h->files.gguf ? listed_in_gguf(h->files.gguf) : listed(&h->files);
  if (list.n) return read_list(h, target, &list, err);
  if (target->layers < 8)
    return dt_fail(err, DT_EINPUT,
                   "%s: its files do not say which layers it reads, and the target's %d layers are too few for the "
                   "default: give head_layers",
                   h->files.path, target->layers);
  h->desc.taps = 3;
  h->desc.tap[0] = 2, h->desc.tap[1] = target->layers / 2, h->desc.tap[2] = target->layers - 3;
  return DT_OK;
}

/* ---- its tensors ------------------------------------------------------------------------------------------------- */

static dt_matrix find_some(finder *f, int n, const char *name) {
  return find_is_there(f, name, NULL) ? find_vector(f, n, name, NULL) : (dt_matrix){0};
}

/* Rows of queries or keys, which llama.cpp's converter zips. */
static dt_matrix find_heads(finder *f, const dt_shape *s, int heads, int in, const char *hf, const char *in_gguf) {
  dt_matrix m = find_matrix(f, heads * s->head_dim, in, hf, in_gguf);
  return m.source && f->from->gguf ? dt_zipped_heads(m, s->head_dim) : m;
}

/* Finds the layer, without the steps before its heads; `in`: the width of the heads' input. */
static void find_layer(finder *f, const dt_shape *s, int in, dt_layer *l) {
  int H = s->hidden, I = s->inter, A = s->heads * s->head_dim, G = s->kv_heads * s->head_dim;
  l->q = find_heads(f, s, s->heads, in, "self_attn.q_proj.weight", "blk.0.attn_q.weight");
  l->k = find_heads(f, s, s->kv_heads, in, "self_attn.k_proj.weight", "blk.0.attn_k.weight");
  l->v = find_matrix(f, G, in, "self_attn.v_proj.weight", "blk.0.attn_v.weight");
  l->q_bias = find_some(f, A, "self_attn.q_proj.bias");
  l->k_bias = find_some(f, G, "self_attn.k_proj.bias");
  l->v_bias = find_some(f, G, "self_attn.v_proj.bias");
  l->q_norm = find_some(f, s->head_dim, "self_attn.q_norm.weight");
  l->k_norm = find_some(f, s->head_dim, "self_attn.k_norm.weight");
  l->o = find_matrix(f, H, A, "self_attn.o_proj.weight", "blk.0.attn_output.weight");
  l->o_bias = find_some(f, H, "self_attn.o_proj.bias");
  l->norm2 = find_vector(f, H, "post_attention_layernorm.weight", "blk.0.ffn_norm.weight");
  l->gate = find_matrix(f, I, H, "mlp.gate_proj.weight", "blk.0.ffn_gate.weight");
  l->up = find_matrix(f, I, H, "mlp.up_proj.weight", "blk.0.ffn_up.weight");
  l->down = find_matrix(f, H, I, "mlp.down_proj.weight", "blk.0.ffn_down.weight");
}

/* Finds norms before fc: those that the config names or, if it names none, those that exist. */
static void find_feature_norms(finder *f, head *h, int width) {
  keys k = checkpoint_keys(&h->files, f->err);
  bool all, each;
  bool named = find_is_there(f, "fc_norm.0.weight", NULL), older = find_is_there(f, "aux_norm_low.weight", NULL);
  bool before = find_is_there(f, "input_norm.weight", "enc.output_norm.weight");
  dt_status status = config_bool(&k, "norm_before_fc", "norm_before_fc", before, &all);
  if (!status) status = config_bool(&k, "fc_norm|use_aux_norm", NULL, named || older, &each);
  if (!status && all && each)
    status = dt_fail(f->err, DT_EINPUT, "%s: norm_before_fc and fc_norm: expected only one of them", k.path);
  if (status && !f->status) f->status = status;
  if (f->status) return;
  if (all) h->desc.all_norm = find_vector(f, h->desc.taps * width, "input_norm.weight", "enc.output_norm.weight");
  static const char *const old_names[] = {"aux_norm_low.weight", "aux_norm_mid.weight", "aux_norm_high.weight"};
  for (f->layer = 0; each && f->layer < h->desc.taps; f->layer++)
    h->desc.stream_norm[f->layer] =
        find_vector(f, width, older && f->layer < 3 ? old_names[f->layer] : "fc_norm.%d.weight", NULL);
}

static void find_eagle3(finder *f, head *h, int width) {
  dt_head_desc *d = &h->desc;
  int H = d->model.shape.hidden, given = d->taps * width;
  uint64_t reads = find_columns(f, "fc.weight", "fc.weight");
  if (reads && reads != (uint64_t)given)
    f->status = dt_fail(f->err, DT_EINPUT,
                        "%s: its fc reads %llu numbers, but the inputs of %d layers of the target have %d: the head "
                        "belongs to another model, or reads other layers",
                        h->files.path, (unsigned long long)reads, d->taps, given);
  d->fc = find_matrix(f, H, given, "fc.weight", "fc.weight");
  d->fc_bias = find_some(f, H, "fc.bias");
  find_feature_norms(f, h, width);
  d->model.final_norm = find_vector(f, H, "norm.weight", "output_norm.weight");
  f->prefix = find_is_there(f, "layers.0.hidden_norm.weight", NULL) ? "layers.0." : "midlayer.";
  d->token_norm = find_vector(f, H, "input_layernorm.weight", "blk.0.attn_norm.weight");
  d->feature_norm = find_vector(f, H, "hidden_norm.weight", "blk.0.attn_norm_2.weight");
  find_layer(f, &d->model.shape, 2 * H, &h->layer);
  f->prefix = "";
}

/* fc has a bias unless the config says otherwise: published configs omit the key and have a bias, or say false. */
static void find_eagle(finder *f, head *h) {
  dt_head_desc *d = &h->desc;
  int H = d->model.shape.hidden;
  keys k = checkpoint_keys(&h->files, f->err);
  bool bias;
  dt_status status = config_bool(&k, "bias", NULL, find_is_there(f, "fc.bias", NULL), &bias);
  if (status && !f->status) f->status = status;
  d->fc = find_matrix(f, H, 2 * H, "fc.weight", NULL);
  if (f->status == DT_OK && bias) d->fc_bias = find_vector(f, H, "fc.bias", NULL);
  f->prefix = "layers.0.";
  find_layer(f, &d->model.shape, H, &h->layer);
  f->prefix = "";
}

/* Finds as many distances as there are outputs; medusa_num_heads is ignored, since published configs are wrong. A block
 * without tensors repeats the first block: such heads were saved from one module that they repeat. */
static void find_medusa(finder *f, head *h, int blocks) {
  dt_head_desc *d = &h->desc;
  int H = d->model.shape.hidden, vocab = d->model.shape.vocab;
  char name[64], output[32];
  snprintf(output, sizeof output, "%%d.%d.weight", blocks);
  d->blocks = blocks;
  for (f->layer = 0; f->status == DT_OK && (f->layer == 0 || find_is_there(f, output, NULL)); f->layer++) {
    if (f->layer == DT_DISTANCES)
      f->status = dt_fail(f->err, DT_EINPUT, "%s: it guesses at more than %d distances, the maximum", h->files.path,
                          DT_DISTANCES);
    if (f->status) return;
    for (int b = 0; b < blocks; b++) {
      snprintf(name, sizeof name, "%%d.%d.linear.weight", b);
      bool again = b && !find_is_there(f, name, NULL);
      d->block[f->layer][b] = again ? d->block[f->layer][0] : find_matrix(f, H, H, name, NULL);
      snprintf(name, sizeof name, "%%d.%d.linear.bias", b);
      d->block_bias[f->layer][b] = again ? d->block_bias[f->layer][0] : find_vector(f, H, name, NULL);
    }
    d->output[f->layer] = find_matrix(f, vocab, H, output, NULL);
    d->distances++;
  }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static dt_status no_layers(const head *h, const char *kind, dt_error *err) {
  return dt_fail(err, DT_EINPUT, "head_layers: %s is %s head, which always reads the output of the final norm",
                 h->files.path, kind);
}

static void read_behind_the_norm(head *h, const dt_shape *target, const char *kind) {
  h->desc.taps = 1, h->desc.tap[0] = target->layers + 1;
  snprintf(h->said, sizeof h->said, "%s, final norm", kind);
}

static dt_status fill_medusa(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  keys k = checkpoint_keys(&h->files, err);
  int blocks;
  if (layers) return no_layers(h, "a Medusa", err);
  dt_status status = config_int_or(&k, "medusa_num_layers", NULL, 1, DT_BLOCKS, &blocks);
  if (!status) status = checkpoint_open_tensors(&h->files, err);
  if (status) return status;
  h->desc.kind = DT_HEAD_MEDUSA;
  h->desc.model.shape = (dt_shape){.vocab = target->vocab,
                                   .hidden = target->hidden,
                                   .inter = target->hidden,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .context = target->context,
                                   .act = DT_ACT_SILU,
                                   .norm = DT_NORM_RMS};
  read_behind_the_norm(h, target, "medusa");
  finder f = {.from = &h->files, .prefix = "", .err = err};
  find_medusa(&f, h, blocks);
  return f.status;
}

/* Sets what the configuration says about the layers of a cross-attention head. In the reference, a row sees one row
 * more than the window's width, all before its own position, which has no row. A layer's window here counts that
 * position too. */
static dt_status fill_layers(head *h, const config *c, dt_error *err) {
  size_t n = (size_t)c->shape.layers, angles = (size_t)(c->shape.rotary_dims + c->shape.local_dims) / 2 + 1;
  h->layers = calloc(n, sizeof *h->layers);
  h->inv_freq = calloc(angles, sizeof *h->inv_freq), h->local_freq = calloc(angles, sizeof *h->local_freq);
  if (!h->layers || !h->inv_freq || !h->local_freq)
    return dt_fail_memory(err, "a head's layers", n * sizeof *h->layers);
  rotation_fill(&c->rotation, c->shape.rotary_dims, h->inv_freq);
  rotation_fill(&c->local_rotation, c->shape.local_dims, h->local_freq);
  for (int i = 0; i < c->shape.layers; i++) {
    h->layers[i] = config_layer(c, i);
    if (h->layers[i].window) h->layers[i].window += 2;
  }
  return DT_OK;
}

static dt_status fill_cross_attention(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  config c = {0};
  dt_head_desc *d = &h->desc;
  keys k = checkpoint_keys(&h->files, err);
  int width = 0, T = target->hidden;
  if (layers) return no_layers(h, "an assistant", err);
  dt_status status = gemma4_assistant.read(&k, &c);
  if (!status) status = config_int_or(&k, "backbone_hidden_size", NULL, 1536, CONFIG_MAX_SIZE, &width);
  if (!status && width != T)
    status = dt_fail(err, DT_EINPUT,
                     "%s: backbone_hidden_size is %d, expected the target's %d: the head belongs to another model",
                     k.path, width, T);
  if (!status && c.shape.vocab != target->vocab)
    status =
        dt_fail(err, DT_EINPUT, "%s: vocab_size is %d, expected the target's %d: the head belongs to another model",
                k.path, c.shape.vocab, target->vocab);
  if (!status) status = checkpoint_open_tensors(&h->files, err);
  if (!status) status = fill_layers(h, &c, err);
  if (status) return status;
  d->kind = DT_HEAD_CROSS_ATTENTION;
  c.shape.turn_scale = (float)c.rotation.scale;
  d->model =
      (dt_model_desc){.shape = c.shape, .inv_freq = h->inv_freq, .local_freq = h->local_freq, .layer = h->layers};
  read_behind_the_norm(h, target, gemma4_assistant.model_type);
  finder f = {.from = &h->files, .prefix = "", .err = err};
  d->fc = find_matrix(&f, c.shape.hidden, 2 * T, "pre_projection.weight", NULL);
  d->post = find_matrix(&f, T, c.shape.hidden, "post_projection.weight", NULL);
  gemma4_assistant.find(&f, &c, &d->model, h->layers);
  d->model.embed = (dt_matrix){0}; /* it is the output's; tokens come in the target's embedding */
  return f.status;
}

static dt_status fill_eagle(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  config c = {0};
  dt_head_desc *d = &h->desc;
  keys k = checkpoint_keys(&h->files, err);
  dt_status status = read_config(&h->files, target, &c, err);
  if (!status) status = config_bool(&k, "norm_before_residual", "norm_before_residual", false, &d->norm_residual);
  if (!status) status = config_bool(&k, "norm_output", NULL, false, &d->norm_output);
  if (!status) status = checkpoint_open_tensors(&h->files, err);
  if (status) return status;
  h->inv_freq = calloc((size_t)c.shape.rotary_dims / 2 + 1, sizeof *h->inv_freq);
  if (!h->inv_freq) return dt_fail_memory(err, "a head's rotation", (size_t)c.shape.rotary_dims);
  rotation_fill(&c.rotation, c.shape.rotary_dims, h->inv_freq);
  d->model = (dt_model_desc){.shape = c.shape, .inv_freq = h->inv_freq, .layer = &h->layer};
  finder f = {.from = &h->files, .prefix = "", .err = err};
  find_stretch(&f, c.shape.rotary_dims / 2, h->inv_freq);
  bool third = h->files.gguf || head_is_called(&h->files, "Eagle3") ||
               find_is_there(&f, "midlayer.hidden_norm.weight", NULL) ||
               find_is_there(&f, "layers.0.hidden_norm.weight", NULL);
  d->kind = third ? DT_HEAD_EAGLE3 : DT_HEAD_EAGLE;
  if (third) {
    if ((status = find_taps(h, target, layers, err))) return status;
    head_name_taps(h, "eagle3");
    find_eagle3(&f, h, target->hidden);
  } else {
    if (layers) return no_layers(h, "an EAGLE-1 or EAGLE-2", err);
    read_behind_the_norm(h, target, "eagle");
    find_eagle(&f, h);
  }
  head_find_ends(&f, h, target);
  return f.status;
}

/* Sets what the configuration says about an MTP layer, which is like the model's last layer. */
static dt_status fill_own_layer(head *h, const config *c, dt_error *err) {
  int last = c->shape.layers - 1;
  size_t experts = c->dense[last] ? 0 : (size_t)c->shape.experts;
  h->inv_freq = calloc((size_t)c->shape.rotary_dims / 2 + 1, sizeof *h->inv_freq);
  h->expert = calloc(experts + 1, sizeof *h->expert);
  if (!h->inv_freq || !h->expert) return dt_fail_memory(err, "a head's layer", experts * sizeof *h->expert);
  rotation_fill(&c->rotation, c->shape.rotary_dims, h->inv_freq);
  h->layer = config_layer(c, last);
  h->layer.delta = false;
  if (experts) h->layer.expert = h->expert;
  dt_shape shape = c->shape;
  shape.layers = 1, shape.delta_value_heads = 0, shape.turn_scale = (float)c->rotation.scale;
  h->desc.model = (dt_model_desc){.shape = shape, .inv_freq = h->inv_freq, .layer = &h->layer};
  return DT_OK;
}

static dt_status fill_own(head *h, const dt_shape *target, dt_error *err) {
  config c = {0};
  char kind[48] = "mtp";
  keys k = checkpoint_keys(&h->files, err);
  const family *kin;
  finder f = {.from = &h->files, .prefix = "", .err = err};
  dt_status status = family_find(&k, &kin);
  if (!status) status = kin->read(&k, &c);
  if (!status) status = checkpoint_open_tensors(&h->files, err);
  if (!status) status = fill_own_layer(h, &c, err);
  if (status) return status;
  h->desc.kind = DT_HEAD_EAGLE;
  if (!kin->find_mtp || !kin->find_mtp(&f, &c, &h->desc, &h->layer))
    return dt_fail(err, DT_EINPUT, "--draft mtp: %s has no MTP layer: give another draft, or none", h->files.path);
  if (c.further > 1) snprintf(kind, sizeof kind, "mtp, the first of %d layers", c.further);
  read_behind_the_norm(h, target, kind);
  return f.status;
}

static dt_status fill(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  if (is_cross_attention(&h->files)) return fill_cross_attention(h, target, layers, err);
  if (head_item(&h->files, "medusa_num_heads")) return fill_medusa(h, target, layers, err);
  if (head_is_block(&h->files)) return head_fill_block(h, target, layers, err);
  return fill_eagle(h, target, layers, err);
}

/* own: opens the head that is in a target's files. */
static dt_status open_head(const char *path, bool own, const dt_rope *rope, const dt_shape *target, const char *layers,
                           head **out, dt_error *err) {
  head *h = calloc(1, sizeof *h);
  if (!h) return dt_fail_memory(err, "a draft head", sizeof *h);
  dt_status status = checkpoint_open(path, &h->files, err);
  if (status != DT_OK) {
    free(h);
    return status;
  }
  h->files.rope = *rope;
  status = own ? fill_own(h, target, err) : fill(h, target, layers, err);
  if (status == DT_OK)
    *out = h;
  else
    head_close(h);
  return status;
}

dt_status head_open(const char *path, const dt_rope *rope, const dt_shape *target, const char *layers, head **out,
                    dt_error *err) {
  return open_head(path, false, &(dt_rope){.context = rope->context}, target, layers, out, err);
}

dt_status head_open_own(const char *target_path, const dt_rope *rope, const dt_shape *target, head **out,
                        dt_error *err) {
  return open_head(target_path, true, rope, target, NULL, out, err);
}

void head_close(head *h) {
  if (!h) return;
  checkpoint_close(&h->files);
  free(h->layers), free(h->expert), free(h->inv_freq), free(h->local_freq), free(h->ids), free(h->id_rows);
  free(h);
}

const dt_head_desc *head_desc(const head *h) { return &h->desc; }

const char *head_said(const head *h) { return h->said; }
