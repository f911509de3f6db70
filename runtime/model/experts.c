/* Keys and tensors of experts: see experts.h. */
#include "model/experts.h"

#include <stdio.h>

#define MOST_ROWS (1 << 28) /* of one matrix of all experts: gates and ups together still fit an int */

dt_status experts_read(const keys *k, bool optional, config *c) {
  dt_shape *s = &c->shape;
  int any = 1;
  dt_status status = optional ? config_count(k, NULL, "expert_count", 0, DT_EXPERTS, &any) : DT_OK;
  if (status || !any) return status;
  s->chosen_only = true;
  status = config_int(k, "num_experts|num_local_experts", "expert_count", DT_EXPERTS, &s->experts);
  if (!status) status = config_int(k, "num_experts_per_tok", "expert_used_count", s->experts, &s->chosen);
  if (!status)
    status = config_int_or(k, "moe_intermediate_size", "expert_feed_forward_length", s->inter, CONFIG_MAX_SIZE,
                           &s->expert_inter);
  int widest = s->expert_inter > s->hidden ? s->expert_inter : s->hidden;
  if (!status && widest > MOST_ROWS / s->experts)
    status = dt_fail(k->err, DT_EINPUT, "%s: %d experts of %d numbers, expected at most %d numbers of all together",
                     k->path, s->experts, widest, MOST_ROWS);
  return status;
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

static void find_all(finder *f, const dt_shape *s, dt_layer *l) {
  const char *both = "layers.%d.mlp.experts.gate_up_proj", *both_in_gguf = "blk.%d.ffn_gate_up_exps.weight";
  int n = s->experts, H = s->hidden, E = s->expert_inter;
  bool together = !f->from->gguf || find_is_there(f, both, both_in_gguf);
  dt_matrix gate, up, down;
  if (together) {
    gate = up = find_matrices(f, n, 2 * E, H, both, both_in_gguf);
  } else {
    gate = find_matrices(f, n, E, H, NULL, "blk.%d.ffn_gate_exps.weight");
    up = find_matrices(f, n, E, H, NULL, "blk.%d.ffn_up_exps.weight");
  }
  down = find_matrices(f, n, H, E, "layers.%d.mlp.experts.down_proj", "blk.%d.ffn_down_exps.weight");
  for (int i = 0; i < n; i++) {
    int first = together ? 2 * i * E : i * E;
    l->expert[i] = (dt_expert){.gate = dt_some_rows(gate, first, E),
                               .up = dt_some_rows(up, together ? first + E : first, E),
                               .down = dt_some_rows(down, i * H, H)};
  }
}

void experts_find(finder *f, const dt_shape *s, dt_layer *l) {
  static const char *const usual[] = {"gate_proj", "up_proj", "down_proj"}, *const older[] = {"w1", "w3", "w2"};
  const char *old = "layers.%d.block_sparse_moe.gate.weight";
  bool is_old = !f->from->gguf && find_is_there(f, old, NULL);
  l->router =
      find_matrix(f, s->experts, s->hidden, is_old ? old : "layers.%d.mlp.gate.weight", "blk.%d.ffn_gate_inp.weight");
  if (f->from->gguf || find_is_there(f, "layers.%d.mlp.experts.gate_up_proj", NULL))
    find_all(f, s, l);
  else
    find_each(f, s, l, is_old ? "block_sparse_moe" : "mlp", is_old ? older : usual);
}
