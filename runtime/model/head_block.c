/* Reads block heads: see dt_head_kind. There are three layouts, all with the layers of a Qwen3 model:
 *
 *   z-lab         (github.com/z-lab/dflash) what belongs to blocks is in the object dflash_config; layers of the target
 *                 are counted by their outputs. JetSpec's heads have this layout.
 *   speculators   keys of layers in an object of their own; an embedding and an output; layers counted by their inputs
 *   GGUF          of llama.cpp: architecture dflash; layers counted by their inputs
 *
 * What belongs to blocks may also be in an object dspark_config, and what DeepSpec's heads (DSpark) have is at the top.
 * In vLLM, layers with a window look backward unless a key says otherwise; in llama.cpp none does. */
#include "model/head_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool head_is_block(const checkpoint *c) {
  const char *name = cJSON_GetStringValue(head_item(c, "general.architecture"));
  return c->gguf ? name && !strcmp(name, "dflash") : head_is_called(c, "DFlash") || head_is_called(c, "DSpark");
}

static dt_status read_block(head *h, const dt_shape *target, dt_error *err) {
  const keys width = head_keys_of_block(&h->files, "target_hidden_size", err);
  const keys size = head_keys_of_block(&h->files, "block_size", err),
             token = head_keys_of_block(&h->files, "mask_token_id", err);
  int mask = 0, hidden = target->hidden;
  dt_status status = config_int_or(&width, "target_hidden_size", NULL, hidden, CONFIG_MAX_SIZE, &hidden);
  if (!status && hidden != target->hidden)
    status = dt_fail(err, DT_EINPUT, "%s: target_hidden_size is %d, expected the target's %d", width.path, hidden,
                     target->hidden);
  if (!status) status = config_int(&size, "block_size", "block_size", DT_DISTANCES, &h->desc.block_rows);
  if (!status && h->desc.block_rows < 2)
    status = dt_fail(err, DT_EINPUT, "%s: block_size is 1, expected 2 to %d", size.path, DT_DISTANCES);
  const char *mask_in_gguf = "tokenizer.ggml.mask_token_id";
  const cJSON *given = cJSON_GetObjectItemCaseSensitive(token.json, token.gguf ? mask_in_gguf : "mask_token_id");
  if (!status && (!given || cJSON_IsNull(given)))
    status = dt_fail(err, DT_EINPUT, "%s: mask_token_id is missing: the token of the places that a block fills in",
                     token.path);
  if (!status) status = config_count(&token, "mask_token_id", mask_in_gguf, 0, target->vocab - 1, &mask);
  h->desc.mask = mask;
  return status;
}

/* Sets which layers look backward: all or none if a key says so. *all: a key says that all do. */
static dt_status read_backward(head *h, int layers, bool *all, dt_error *err) {
  static const char *const names[] = {"is_causal", "causal", "causal_head", "attention.causal"};
  const keys top = checkpoint_keys(&h->files, err);
  bool both, said = top.gguf;
  *all = false;
  dt_status status = config_bool(&top, "sliding_window_non_causal", NULL, false, &both);
  for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
    const keys k = head_keys_of_block(&h->files, names[i], err);
    bool causal;
    status = config_bool(&k, names[i], names[i], false, &causal);
    if (status) break;
    said |= cJSON_HasObjectItem(k.json, names[i]);
    *all |= causal;
  }
  for (int i = 0; i < layers && !status; i++) h->layers[i].backward = said ? *all : !both && h->layers[i].window > 0;
  return status;
}

/* The layers that z-lab's program takes if the files list none: n of them, evenly from the second to the fourth last.
 */
static void take_usual_taps(head *h, const dt_shape *target, int n) {
  const double first = 1, last = target->layers - 3;
  h->desc.taps = n < DT_TAPS ? n : DT_TAPS;
  for (int i = 0; i < h->desc.taps; i++)
    h->desc.tap[i] = 1 + (n == 1 ? target->layers / 2 : (int)nearbyint(first + i * (last - first) / (n - 1)));
}

/* Reads the layers that the head reads. own: how many layers it has. */
static dt_status read_taps(head *h, const dt_shape *target, int own, dt_error *err) {
  static const struct {
    const char *name;
    int before; /* what is added to get the layer whose input is read */
  } lists[] = {{"target_layers", 0}, {"aux_hidden_state_layer_ids", 0}, {"target_layer_ids", 1}};
  const cJSON *list = NULL;
  int which = 0;
  for (; which < 3 && !list; which++) {
    const keys k = head_keys_of_block(&h->files, lists[which].name, err);
    list = cJSON_GetObjectItemCaseSensitive(k.json, lists[which].name);
    if (cJSON_IsNull(list)) list = NULL;
  }
  if (!list) return take_usual_taps(h, target, own), DT_OK;
  const int before = lists[--which].before, n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : cJSON_IsNumber(list);
  bool fits = n >= 1 && n <= DT_TAPS;
  for (const cJSON *i = cJSON_IsArray(list) ? list->child : list; i && h->desc.taps < n && fits; i = i->next) {
    const double layer = cJSON_IsNumber(i) ? i->valuedouble + before : -1;
    fits = layer >= before && layer <= target->layers && layer == (int)layer;
    if (fits) h->desc.tap[h->desc.taps++] = (int)layer;
  }
  return fits ? DT_OK
              : dt_fail(err, DT_EINPUT, "%s: %s: expected up to %d layers from 0 to %d whose %s the head reads",
                        h->files.keys_path, lists[which].name, DT_TAPS, target->layers - before,
                        before ? "outputs" : "inputs");
}

/* Reads a window that dflash_config gives all layers. */
static dt_status read_common_window(const head *h, config *c, dt_error *err) {
  const keys k = head_keys_of_block(&h->files, "use_swa", err);
  bool all;
  dt_status status = config_bool(&k, "use_swa", NULL, false, &all);
  if (status || !all) return status;
  status = config_int(&k, "swa_window_size", NULL, CONFIG_MAX_SIZE, &c->window);
  for (int i = 0; i < c->shape.layers; i++) c->local[i] = true;
  return status;
}

/* Reads the keys of the layers. Windows are of single layers: they do not limit the context. */
static dt_status read_layers(head *h, const dt_shape *target, config *c, dt_error *err) {
  keys k;
  const family *of = NULL;
  int width = target->hidden;
  dt_status status = head_keys_of_layer(&h->files, target, &k, err);
  if (!status) status = family_of_head(&k, &of);
  if (!status) status = of->read(&k, c);
  const cJSON *list =
      cJSON_GetObjectItemCaseSensitive(k.json, k.gguf ? "attention.sliding_window_pattern" : "layer_types");
  if (!status && (c->shape.window || cJSON_IsArray(list))) {
    c->shape.window = 0;
    status = config_int(&k, "max_position_embeddings", "context_length", CONFIG_MAX_SIZE, &c->shape.context);
    if (!status) status = config_local(&k, 0, 0, c);
  }
  if (!status) status = read_common_window(h, c, err);
  if (!status && c->shape.hidden != width)
    status =
        dt_fail(err, DT_EINPUT, "%s: hidden_size is %d, expected the target's %d: the head belongs to another model",
                k.path, c->shape.hidden, width);
  if (!status && c->shape.vocab != target->vocab)
    status =
        dt_fail(err, DT_EINPUT, "%s: vocab_size is %d, expected the target's %d: the head belongs to another model",
                k.path, c->shape.vocab, target->vocab);
  c->shape.turn_scale = (float)c->rotation.scale;
  return status;
}

/* What some heads add that would change every guess. */
static dt_status refuse_others(const head *h, dt_error *err) {
  static const char *const names[] = {"attention_sink_bias",     "attention_value_scale",
                                      "output_multiplier",       "input_embedding_scale",
                                      "final_logit_softcapping", "dspark_backbone_conv_enabled"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const keys k = head_keys_of_block(&h->files, names[i], err);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(k.json, names[i]);
    const bool off = !item || cJSON_IsNull(item) || cJSON_IsFalse(item) || (cJSON_IsNumber(item) && !item->valuedouble);
    if (!off) return dt_fail(err, DT_EINPUT, "%s: %s is not supported in a block head", k.path, names[i]);
  }
  return DT_OK;
}

dt_status head_fill_block(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  dt_head_desc *d = &h->desc;
  config *c = calloc(1, sizeof *c); /* it is large */
  if (!c) return dt_fail_memory(err, "a head's keys", sizeof *c);
  dt_status status = refuse_others(h, err);
  if (!status) status = read_block(h, target, err);
  if (!status) status = read_layers(h, target, c, err);
  if (!status) status = layers ? head_read_layers(h, target, layers, err) : read_taps(h, target, c->shape.layers, err);
  if (!status) status = checkpoint_open_tensors(&h->files, err);
  if (!status) status = head_read_successors(h, c, err);
  if (!status) {
    h->layers = calloc((size_t)c->shape.layers, sizeof *h->layers);
    h->inv_freq = calloc((size_t)c->shape.rotary_dims / 2 + 1, sizeof *h->inv_freq);
    if (!h->layers || !h->inv_freq) status = dt_fail_memory(err, "a head's layers", sizeof *h->layers);
  }
  if (status) {
    free(c);
    return status;
  }
  rotation_fill(&c->rotation, c->shape.rotary_dims, h->inv_freq);
  d->kind = DT_HEAD_BLOCK;
  d->model = (dt_model_desc){.shape = c->shape, .inv_freq = h->inv_freq, .layer = h->layers};
  finder f = {.from = &h->files, .prefix = "", .err = err};
  find_stretch(&f, c->shape.rotary_dims / 2, h->inv_freq);
  d->fc = find_matrix(&f, c->shape.hidden, d->taps * target->hidden, "fc.weight", "fc.weight");
  d->feature_norm = find_vector(&f, c->shape.hidden, "hidden_norm.weight", "enc.output_norm.weight");
  d->model.final_norm = find_vector(&f, c->shape.hidden, "norm.weight", "output_norm.weight");
  for (f.layer = 0; f.layer < c->shape.layers; f.layer++) {
    h->layers[f.layer] = config_layer(c, f.layer);
    family_find_layer_of_head(&f, c, &h->layers[f.layer]);
    head_find_mixes(&f, &c->shape, &h->layers[f.layer]);
  }
  head_find_ends(&f, h, target);
  const char *name = head_find_successors(&f, h);
  free(c);
  bool causal = false;
  status = f.status ? f.status : read_backward(h, d->model.shape.layers, &causal, err);
  char kind[48];
  snprintf(kind, sizeof kind, "%s, block of %d", name ? name : causal ? "jetspec" : "dflash", d->block_rows);
  head_name_taps(h, kind);
  return status;
}
