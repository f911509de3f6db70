/* Models with experts of several kinds, and what the CUDA backend says of their rows, next to the CPU. */
#ifndef CUDA_ROUTES_H
#define CUDA_ROUTES_H

#include "cpu.h"
#include "cuda_device.h"
#include "random_parts.h"
#include "rig.h"

static void after_a_dense_layer(random_model *m) { random_experts(m, 1, 27, false, false); }

typedef struct {
  const char *name;
  void (*add)(random_model *);
} expert_kind;

static const expert_kind expert_kinds[] = {{"as Qwen3", after_a_dense_layer},
                                           {"as gpt-oss", random_gpt_oss},
                                           {"as GLM-4.5", random_glm},
                                           {"as Gemma 4", random_gemma4_experts},
                                           {"as Qwen3.5, but dense", random_gated_experts}};
enum { EXPERT_KINDS = sizeof expert_kinds / sizeof *expert_kinds };

static inline random_model *expert_model(const expert_kind *k, int which) {
  model_shape shape = cuda_shape(which);
  random_model *m = random_model_new(&shape, 7);
  k->add(m);
  return m;
}

/* What a pass says of its rows. */
typedef struct {
  float *logits;
  int32_t *id; /* [rows][layers][chosen] */
  int read;
} said;

static inline said run_experts(rig *r, const dt_shape *s, const row_list *l) {
  said of = {malloc(sizeof(float) * (size_t)(l->n * r->vocab)),
             malloc(sizeof(int32_t) * (size_t)(l->n * s->layers * s->chosen)), 0};
  int32_t all[MAX_ROWS];
  for (int i = 0; i < l->n; i++) all[i] = i;
  dt_rows rows = rows_of(l);
  dt_out out = {
      .want = DT_WANT_LOGITS, .n = l->n, .row = all, .logits = of.logits, .experts = of.id, .experts_read = &of.read};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  return of;
}

static inline int distinct(const said *of, const dt_shape *s, int rows) {
  int n = 0;
  for (int layer = 0; layer < s->layers; layer++) {
    bool seen[DT_EXPERTS] = {false};
    for (int i = 0; i < rows * s->chosen; i++) {
      int id = of->id[(i / s->chosen * s->layers + layer) * s->chosen + i % s->chosen];
      if (id >= 0 && !seen[id]) seen[id] = true, n++;
    }
  }
  return n;
}

enum { COMPARED_TEXT = 40, COMPARED_TREE = 24, COMPARED_SLOTS = COMPARED_TEXT + 60 };

/* Compares such a device, whose cache has COMPARED_SLOTS slots, with the CPU, and closes it. The logits are near each
 * other up to the first row that chooses other experts, which rounding may cause: the rows
 * after it see its keys. */
static inline void compare_experts(const char *name, random_model *m, rig gpu, double most) {
  const dt_shape *s = &m->desc.shape;
  rig cpu = rig_open_rounded(&dt_cpu_ops, (dt_backend_options){.threads = 2}, &m->desc, (dt_holding){.dtype = "f32"}, 1,
                             COMPARED_SLOTS);
  uint64_t seed = 3;
  row_list part[2] = {0};
  for (int i = 0; i < COMPARED_TEXT; i++)
    row_add_plain(&part[0], 0, (int32_t)(random_next(&seed) % (uint32_t)gpu.vocab), i);
  row_add_tree(&part[1], 0, COMPARED_TEXT, COMPARED_TREE, 5);
  int same = 0, near = 0, rows = 0, ids = s->layers * s->chosen;
  double worst = 0;
  for (int p = 0; p < 2; p++) {
    said expected = run_experts(&cpu, s, &part[p]), got = run_experts(&gpu, s, &part[p]);
    assert_int_equal(got.read, distinct(&got, s, part[p].n));
    for (int i = 0; i < part[p].n; i++, rows++) {
      bool agree = !memcmp(expected.id + i * ids, got.id + i * ids, sizeof(int32_t) * (size_t)ids);
      same += agree;
      if (same <= rows) continue; /* an earlier row did not agree, or this one does not */
      size_t at = (size_t)(i * gpu.vocab);
      worst = fmax(worst, logits_difference(got.logits + at, expected.logits + at, (size_t)gpu.vocab));
      near++;
    }
    free(expected.logits), free(expected.id), free(got.logits), free(got.id);
  }
  print_message("%s: %d of %d rows choose the same experts; the logits of %d differ by %.2g of their size\n", name,
                same, rows, near, worst);
  if (same < rows * 9 / 10 || near < 5)
    fail_msg("%s: only %d of %d rows choose the same experts, %d before the first that does not", name, same, rows,
             near);
  if (worst > most) fail_msg("%s: the logits differ by %g of their size, at most %g", name, worst, most);
  rig_close(&cpu), rig_close(&gpu);
}

#endif
