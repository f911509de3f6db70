/* Keys and tensors of experts: see experts.h. */
#include "model/experts.h"

#include <stdio.h>

#define MOST_ROWS (1 << 28) /* maximum for one matrix of all experts: gates and ups together still fit an int */

dt_status experts_read(const keys *k, bool optional, config *c) {
  dt_shape *s = &c->shape;
  int any = 1;
  dt_status status = optional ? config_count(k, NULL, "expert_count", 0, DT_EXPERTS, &any) : DT_OK;
  if (status || !any) return status;
  s->chosen_only = true;
  status = config_int(k, "num_experts|num_local_experts|n_routed_experts", "expert_count", DT_EXPERTS, &s->experts);
  if (!status) status = config_int(k, "num_experts_per_tok|top_k_experts", "expert_used_count", s->experts, &s->chosen);
  const char *width = "moe_intermediate_size", *width_in_gguf = "expert_feed_forward_length";
  if (!status)
    status = s->inter ? config_int_or(k, width, width_in_gguf, s->inter, CONFIG_MAX_SIZE, &s->expert_inter)
                      : config_int(k, width, width_in_gguf, CONFIG_MAX_SIZE, &s->expert_inter);
  int widest = s->expert_inter > s->hidden ? s->expert_inter : s->hidden;
  if (!status && widest > MOST_ROWS / s->experts)
    status = dt_fail(k->err, DT_EINPUT, "%s: %d experts of %d numbers, expected at most %d numbers in total", k->path,
                     s->experts, widest, MOST_ROWS);
  return status;
}

/* The name of an experts' tensor in a folder: the name of the experts, which c may set, and then the rest. */
static const char *named(const config *c, const char *suffix, char name[96]) {
  snprintf(name, 96, "%s%s", c->experts_name ? c->experts_name : "layers.%d.mlp.experts", suffix);
  return name;
}

/* One matrix of an expert, in a folder. */
static dt_matrix find_one(finder *f, int rows, int cols, const char *in, int expert, const char *part) {
  char name[96];
  snprintf(name, sizeof name, "layers.%%d.%s.experts.%d.%s.weight", in, expert, part);
  return find_matrix(f, rows, cols, name, NULL);
}

static void find_each(finder *f, const dt_shape *s, dt_layer *l, const char *in, const char *const part[3]) {
  int H = s->hidden, E = s->expert_inter;
  for (int i = 0; i < s->experts && f->status == DT_OK; i++)
    l->expert[i] = (dt_expert){.gate = find_one(f, E, H, in, i, part[0]),
                               .up = find_one(f, E, H, in, i, part[1]),
                               .down = find_one(f, H, E, in, i, part[2])};
}

static void find_all(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  char both[96], last[96];
  const char *both_in_gguf = "blk.%d.ffn_gate_up_exps.weight";
  int n = s->experts, H = s->hidden, E = s->expert_inter;
  bool together = !f->from->gguf || find_is_there(f, NULL, both_in_gguf);
  dt_matrix gate, up, down;
  if (together) {
    gate = up = find_matrices(f, n, 2 * E, H, named(c, ".gate_up_proj", both), both_in_gguf);
  } else {
    gate = find_matrices(f, n, E, H, NULL, "blk.%d.ffn_gate_exps.weight");
    up = find_matrices(f, n, E, H, NULL, "blk.%d.ffn_up_exps.weight");
  }
  down = find_matrices(f, n, H, E, named(c, ".down_proj", last), "blk.%d.ffn_down_exps.weight");
  for (int i = 0; i < n; i++) {
    int first = together ? 2 * i * E : i * E;
    l->expert[i] = (dt_expert){.gate = dt_some_rows(gate, first, E),
                               .up = dt_some_rows(up, together ? first + E : first, E),
                               .down = dt_some_rows(down, i * H, H)};
  }
}

/* The experts of gpt-oss in a folder: matrices are transposed or, in MXFP4, have their scales in a separate tensor. */
static dt_matrix find_turned(finder *f, int n, int rows, int cols, const char *name) {
  char blocks[96], scales[96];
  snprintf(blocks, sizeof blocks, "%s_blocks", name), snprintf(scales, sizeof scales, "%s_scales", name);
  return find_is_there(f, blocks, NULL) ? find_blocks(f, n, rows, cols, blocks, scales)
                                        : find_across(f, n, rows, cols, name);
}

/* In folders of gpt-oss, rows of gates and ups alternate. */
static void find_in_turns(finder *f, const dt_shape *s, dt_layer *l) {
  int n = s->experts, H = s->hidden, E = s->expert_inter;
  dt_matrix both = find_turned(f, n, 2 * E, H, "layers.%d.mlp.experts.gate_up_proj");
  dt_matrix down = find_turned(f, n, H, E, "layers.%d.mlp.experts.down_proj");
  dt_matrix bias = find_vectors(f, n, 2 * E, "layers.%d.mlp.experts.gate_up_proj_bias", NULL);
  dt_matrix down_bias = find_vectors(f, n, H, "layers.%d.mlp.experts.down_proj_bias", NULL);
  for (int i = 0; i < n; i++) {
    dt_matrix own = dt_one_of(both, i, 2 * E), own_bias = dt_one_of(bias, i, 2 * E);
    l->expert[i] = (dt_expert){.gate = dt_part_of_heads(own, 2, 0, 1),
                               .up = dt_part_of_heads(own, 2, 1, 1),
                               .down = dt_one_of(down, i, H),
                               .gate_bias = dt_part_of_heads(own_bias, 2, 0, 1),
                               .up_bias = dt_part_of_heads(own_bias, 2, 1, 1),
                               .down_bias = dt_one_of(down_bias, i, H)};
  }
}

static void find_biases_in_gguf(finder *f, const dt_shape *s, dt_layer *l) {
  int n = s->experts, H = s->hidden, E = s->expert_inter;
  dt_matrix gate = find_vectors(f, n, E, NULL, "blk.%d.ffn_gate_exps.bias");
  dt_matrix up = find_vectors(f, n, E, NULL, "blk.%d.ffn_up_exps.bias");
  dt_matrix down = find_vectors(f, n, H, NULL, "blk.%d.ffn_down_exps.bias");
  for (int i = 0; i < n; i++)
    l->expert[i].gate_bias = dt_one_of(gate, i, E), l->expert[i].up_bias = dt_one_of(up, i, E),
    l->expert[i].down_bias = dt_one_of(down, i, H);
}

/* One row: a GGUF file has it as a matrix or as a vector. */
static dt_matrix find_row(finder *f, int cols, const char *hf, const char *in_gguf) {
  if (!f->from->gguf || find_columns(f, hf, in_gguf) != 1) return find_matrix(f, 1, cols, hf, in_gguf);
  dt_matrix m = find_vector(f, cols, hf, in_gguf);
  m.rows = m.group = m.stride = 1, m.cols = cols;
  return m;
}

static void find_shared(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  static const char *const part[] = {"gate_proj", "up_proj", "down_proj"};
  int H = s->hidden, I = s->inter;
  char name[3][96];
  for (int i = 0; i < 3; i++) snprintf(name[i], sizeof name[i], "%s.%s.weight", c->shared_name, part[i]);
  l->gate = find_matrix(f, I, H, name[0], "blk.%d.ffn_gate_shexp.weight");
  l->up = find_matrix(f, I, H, name[1], "blk.%d.ffn_up_shexp.weight");
  l->down = find_matrix(f, H, I, name[2], "blk.%d.ffn_down_shexp.weight");
  if (c->gated_shared)
    l->mlp_gate = find_row(f, H, "layers.%d.mlp.shared_expert_gate.weight", "blk.%d.ffn_gate_inp_shexp.weight");
}

/* The norms and scales of Gemma 4's experts. */
static void find_norms(finder *f, const dt_shape *s, dt_layer *l) {
  int H = s->hidden;
  l->expert_norm = find_vector(f, H, "layers.%d.pre_feedforward_layernorm_2.weight", "blk.%d.pre_ffw_norm_2.weight");
  l->mlp_norm = find_vector(f, H, "layers.%d.post_feedforward_layernorm_1.weight", "blk.%d.post_ffw_norm_1.weight");
  l->experts_norm = find_vector(f, H, "layers.%d.post_feedforward_layernorm_2.weight", "blk.%d.post_ffw_norm_2.weight");
  l->router_norm = find_vector(f, H, "layers.%d.router.scale", "blk.%d.ffn_gate_inp.scale");
  l->expert_scale = find_vector(f, s->experts, "layers.%d.router.per_expert_scale", "blk.%d.ffn_down_exps.scale");
}

void experts_find(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  static const char *const usual[] = {"gate_proj", "up_proj", "down_proj"}, *const older[] = {"w1", "w3", "w2"};
  const char *old = "layers.%d.block_sparse_moe.gate.weight";
  char name[96];
  bool in_gguf = f->from->gguf, is_old = find_is_there(f, old, NULL) && !in_gguf;
  const char *router = is_old ? old : c->router_name ? c->router_name : "layers.%d.mlp.gate.weight";
  l->router = find_matrix(f, s->experts, s->hidden, router, "blk.%d.ffn_gate_inp.weight");
  if (c->biased_experts)
    l->router_bias = find_vector(f, s->experts, "layers.%d.mlp.router.bias", "blk.%d.ffn_gate_inp.bias");
  if (s->router_sigmoid)
    l->router_correction =
        find_vector(f, s->experts, "layers.%d.mlp.gate.e_score_correction_bias", "blk.%d.exp_probs_b.bias");
  if (c->shared_name) find_shared(f, c, s, l);
  if (c->beside_experts) find_norms(f, s, l);
  if (c->biased_experts && !in_gguf)
    find_in_turns(f, s, l);
  else if (in_gguf || find_is_there(f, named(c, ".gate_up_proj", name), NULL) || c->experts_name)
    find_all(f, c, s, l);
  else
    find_each(f, s, l, is_old ? "block_sparse_moe" : "mlp", is_old ? older : usual);
  if (c->biased_experts && in_gguf) find_biases_in_gguf(f, s, l);
}
