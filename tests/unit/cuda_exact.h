/* Promise 1 on the CUDA backend, for each type of caches: the bits of a row do not depend on the rows next to it, on
 * its index among them, or on the slots of its keys. The reference is plain decoding on the same device. `caches`: see
 * dt_backend_options. */
#ifndef CUDA_EXACT_H
#define CUDA_EXACT_H

#include "cuda_device.h"
#include "tree_case.h"

#if defined(__SANITIZE_ADDRESS__)
enum { MOST = 34 }; /* maximum number of tree rows for the emulation, if models are not tiny */
#else
enum { MOST = 66 };
#endif

static const dt_window ALL = {0};

static inline rig rig_holding(const char *caches, const dt_model_desc *desc, int sequences, int slots) {
  return rig_open_with(&dt_cuda_ops, (dt_backend_options){.threads = 1, .cache_dtype = caches}, desc, sequences, slots);
}

/* Checks batches of n rows in r, with plain decoding in `plain`, and closes both: a few n with `some`, otherwise all up
 * to 64; always the whole tree. */
static inline void check_rigs(rig plain, rig r, int prefix, int nodes, bool some) {
  const int few[] = {1, 2, 7, 9, 16, 17, 33, 64, 65};
  tree_case t;
  decode_plainly(&plain, &t, prefix, nodes, (uint64_t)prefix + 1);
  ok(r.ops->restore(r.cache, 0, t.prefix_rows, &err));
  for (int n = 1; !some && n <= 64 && n <= nodes; n++) check_batch(&r, &t, n, (uint64_t)n);
  for (size_t i = 0; some && i < sizeof few / sizeof *few; i++)
    if (few[i] <= nodes) check_batch(&r, &t, few[i], i);
  if (nodes > 128) check_batch(&r, &t, 128, 1);
  check_batch(&r, &t, nodes, 1);
  tree_case_free(&plain, &t);
  rig_close(&plain), rig_close(&r);
}

static inline void check_prefix(const dt_model_desc *desc, const char *caches, int prefix, int nodes, bool some,
                                dt_window window) {
  rig plain = rig_holding(caches, desc, 2, prefix + SPREAD);
  rig r = rig_holding(caches, desc, 1, prefix + SPREAD);
  plain.window = r.window = window;
  check_rigs(plain, r, prefix, nodes, some);
}

/* Checks that a prompt leaves the same cache whatever the size of its passes, even with rows of another sequence in
 * between. */
static inline void check_text(const dt_model_desc *desc, const char *caches) {
  enum { LENGTH = 150 };
  rig plain = rig_holding(caches, desc, 1, LENGTH), r = rig_holding(caches, desc, 2, LENGTH);
  uint64_t seed = 5;
  int32_t token[LENGTH];
  for (int p = 0; p < LENGTH; p++) {
    row_list l = {0};
    token[p] = (int32_t)(random_next(&seed) % (uint32_t)desc->shape.vocab);
    row_add_plain(&l, 0, token[p], p);
    rig_run(&plain, &l, false);
  }
  for (int p = 0; p < LENGTH;) {
    row_list l = {0};
    int n = 1 + (int)(random_next(&seed) % 90);
    for (int i = 0; i < n && p < LENGTH; i++, p++) {
      row_add_plain(&l, 0, token[p], p);
      if (p % 3 == 0) row_add_plain(&l, 1, token[p / 3], p / 3);
    }
    rig_run(&r, &l, false);
  }
  for (int p = 0; p < LENGTH; p++)
    for (int sequence = 0; sequence < (p < LENGTH / 3 ? 2 : 1); sequence++) {
      size_t len;
      void *expected = rig_slot(&plain, 0, p, &len), *chunked = rig_slot(&r, sequence, p, &len);
      assert_memory_equal(expected, chunked, len);
      free(expected), free(chunked);
    }
  rig_close(&plain), rig_close(&r);
}

/* A model whose values differ in size from token to token by 2^24, or by 2^120 in BF16. Each token's embedding is a
 * single number, which is multiplied with a column of v of a size of its own. */
static inline random_model *uneven_model(const model_shape *shape) {
  random_model *m = random_model_new(shape, 14);
  int h = shape->hidden, fraction = shape->dtype == DT_F16 ? 10 : 7, bias = shape->dtype == DT_F16 ? 15 : 127;
  int least = shape->dtype == DT_F16 ? -14 : -60, sizes = -2 * least - 3;
  uint16_t *embed = (uint16_t *)m->desc.embed.source->bytes;
  memset(embed, 0, sizeof *embed * (size_t)shape->vocab * (size_t)h);
  for (int id = 0; id < shape->vocab; id++) embed[id * h + id % h] = (uint16_t)(bias << fraction);
  for (int i = 0; i < shape->layers; i++) {
    uint16_t *v = (uint16_t *)m->layer[i].v.source->bytes;
    for (int at = 0; at < m->layer[i].v.rows * h; at++) {
      int exponent = least + at % h * 11 % sizes;
      v[at] = (uint16_t)((v[at] & ((1 << fraction) - 1)) | (v[at] & 0x8000) | ((exponent + bias) << fraction));
    }
  }
  return m;
}

/* Checks that moved rows behave as if they had been computed in their new slots. */
static inline void check_moves(const char *caches) {
  model_shape shape = cuda_shape(1);
  random_model *m = random_model_new(&shape, 10);
  rig r = rig_holding(caches, &m->desc, 2, 40);
  row_list prompt = {0}, tree = {0}, next = {0};
  for (int p = 0; p < 10; p++) row_add_plain(&prompt, 0, p, p), row_add_plain(&prompt, 1, p, p);
  rig_run(&r, &prompt, false);
  row_add(&tree, 0, 50, 10, (int32_t[]){11}, 1);
  row_add(&tree, 0, 51, 10, (int32_t[]){11, 17}, 2);
  row_add_plain(&tree, 1, 50, 10), row_add_plain(&tree, 1, 51, 11);
  rig_run(&r, &tree, false);
  ok(r.ops->move(r.cache, 0, (int32_t[]){11, 17}, (int32_t[]){10, 11}, 2, &err));
  row_add_plain(&next, 0, 53, 12), row_add_plain(&next, 1, 53, 12);
  float *logits = rig_run(&r, &next, true);
  assert_memory_equal(logits, logits + r.vocab, sizeof *logits * (size_t)r.vocab);
  free(logits);
  rig_close(&r);
  random_model_free(m);
}

#endif
