/* What a block head adds to the logits of a token's successors, and the mixes of its layers: DSpark's Markov head and
 * DFlash2's selector and convolutions. See dt_head_kind. */
#include "model/head_parts.h"

#include <string.h>

static bool is_dspark(const head *h) { return head_is_called(&h->files, "DSpark"); }

/* Speculators' exports predict from the second row on, DeepSpec's from the first; GGUF files say so, or are like the
 * latter if they have a Markov head. */
static dt_status read_anchor(head *h, bool markov, dt_error *err) {
  static const char *const names[] = {"sample_from_anchor", "shift_label"};
  const bool exported =
      head_item(&h->files, "transformer_layer_config") || head_item(&h->files, "aux_hidden_state_layer_ids");
  h->desc.from_anchor = h->files.gguf ? markov : is_dspark(h) && !exported;
  dt_status status = DT_OK;
  for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
    const keys k = head_keys_of_block(&h->files, names[i], err);
    status = config_bool(&k, names[i], names[i], h->desc.from_anchor, &h->desc.from_anchor);
  }
  return status;
}

static dt_status read_markov_type(const head *h, dt_error *err) {
  const keys k = head_keys_of_block(&h->files, "markov_head_type", err);
  const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(k.json, "markov_head_type"));
  return !type || !strcmp(type, "vanilla")
             ? DT_OK
             : dt_fail(err, DT_EINPUT, "%s: markov_head_type \"%.40s\" is not supported, only \"vanilla\" is", k.path,
                       type);
}

/* Whether the head is a DFlash2: a key that others lack is there. */
static bool is_dflash2(const head *h) {
  static const char *const names[] = {"conv_kernel_size", "conv_group_size", "selector_top_k", "selector_rank"};
  bool is = head_is_called(&h->files, "DFlash2");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const keys k = head_keys_of_block(&h->files, names[i], NULL);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(k.json, names[i]);
    is |= item && !cJSON_IsNull(item);
  }
  return is;
}

dt_status head_read_successors(head *h, config *c, dt_error *err) {
  static const char *const names[] = {"conv_kernel_size", "conv_group_size", "selector_top_k"};
  const finder f = {.from = &h->files, .prefix = "", .err = err};
  const bool markov = find_is_there(&f, "markov_head.markov_w1.weight", "markov_w1.weight");
  const bool selects = is_dflash2(h);
  int value[3] = {0}, most[] = {DT_DISTANCES, c->shape.hidden, DT_LISTED};
  dt_status status = read_anchor(h, markov, err);
  if (!status) status = read_markov_type(h, err);
  for (int i = 0; i < 3 && selects && !status; i++) {
    const keys k = head_keys_of_block(&h->files, names[i], err);
    status = config_int(&k, names[i], names[i], most[i], &value[i]);
    if (!status && i == 1 && c->shape.hidden % value[i])
      status = dt_fail(err, DT_EINPUT, "%s: conv_group_size is %d, expected a divisor of hidden_size %d", k.path,
                       value[i], c->shape.hidden);
  }
  if (status || !selects) return status;
  c->shape.mix_taps = value[0], c->shape.mix_groups = c->shape.hidden / value[1];
  h->desc.listed = value[2];
  return DT_OK;
}

static void find_mix(finder *f, const dt_shape *s, const char *hf[2], const char *in_gguf[2], dt_matrix *mix,
                     dt_matrix *base) {
  *mix = find_matrix(f, 2 * s->mix_taps * s->mix_groups, s->hidden, hf[0], in_gguf[0]);
  *base = find_matrices(f, 2, s->mix_taps, s->hidden, hf[1], in_gguf[1]);
  base->rows = base->group = base->stride = base->rows * base->cols, base->cols = 1;
}

void head_find_mixes(finder *f, const dt_shape *s, dt_layer *l) {
  if (!s->mix_taps) return;
  find_mix(
      f, s,
      (const char *[]){"layers.%d.attention_conv.kernel_projection.weight", "layers.%d.attention_conv.base_kernel"},
      (const char *[]){"blk.%d.attn_conv_proj.weight", "blk.%d.attn_conv_base"}, &l->attention_mix,
      &l->attention_mix_base);
  find_mix(f, s, (const char *[]){"layers.%d.mlp_conv.kernel_projection.weight", "layers.%d.mlp_conv.base_kernel"},
           (const char *[]){"blk.%d.ffn_conv_proj.weight", "blk.%d.ffn_conv_base"}, &l->mlp_mix, &l->mlp_mix_base);
}

/* The number of numbers that pairs of tokens share: the configuration's, or that of the tensor; 0: there is no tensor,
 * or an earlier failure. */
static int rank_of(finder *f, const head *h, const char *key, const char *hf, const char *in_gguf) {
  const keys k = head_keys_of_block(&h->files, key, f->err);
  const uint64_t columns = find_columns(f, hf, in_gguf);
  int rank = 0;
  if (f->status || !columns || columns > CONFIG_MAX_SIZE) return 0;
  f->status = config_int_or(&k, key, key, (int)columns, CONFIG_MAX_SIZE, &rank);
  return f->status ? 0 : rank;
}

const char *head_find_successors(finder *f, head *h) {
  dt_head_desc *d = &h->desc;
  const dt_shape *s = &d->model.shape;
  const int outputs = d->model.id_rows ? d->model.unembed.rows : s->vocab;
  if (d->listed) {
    const char *const hf = "candidate_selector.predecessor_codebook", *const in_gguf = "selector_predecessor.weight";
    const int rank = rank_of(f, h, "selector_rank", hf, in_gguf);
    d->before = find_matrix(f, s->vocab, rank, hf, in_gguf);
    d->after = find_matrix(f, s->vocab, rank, "candidate_selector.successor_codebook", "selector_successor.weight");
    d->post = find_matrix(f, rank, s->hidden, "candidate_selector.hidden_projection.weight", "selector_hidden.weight");
    return "dflash2";
  }
  const char *const hf = "markov_head.markov_w1.weight", *const in_gguf = "markov_w1.weight";
  const int rank = rank_of(f, h, "markov_rank", hf, in_gguf);
  const keys k = head_keys_of_block(&h->files, "markov_rank", f->err);
  const cJSON *asked = cJSON_GetObjectItemCaseSensitive(k.json, "markov_rank");
  if (!rank && !(cJSON_IsNumber(asked) && asked->valuedouble > 0)) return is_dspark(h) ? "dspark" : NULL;
  d->before = find_matrix(f, s->vocab, rank, hf, in_gguf);
  d->after = find_matrix(f, outputs, rank, "markov_head.markov_w2.weight", "markov_w2.weight");
  return "dspark";
}
