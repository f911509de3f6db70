/* A text that the CUDA backend generates with the bundled target, compared with the CPU backend. Every token is the one
 * that the CPU's logits choose, or one with a logit that differs from it by no more than the rounding of 16-bit
 * activations. */
#include "cpu.h"
#include "cuda.h"
#include "cuda_device.h"
#include "golden_logits.h"
#include "model/model.h"
#include "rig.h"

enum { PROMPT = 12, MOST = PROMPT + 200 };
#define TOLERANCE 0.03f /* for logits with a standard deviation of about 3 */

static void run_text(rig *r, const int32_t *token, int first, int n, dt_out *out) {
  dt_rows rows = text_rows(token, 0, first, n);
  ok(r->ops->forward(r->weights, r->cache, &rows, out, &err));
}

static void tokens_are_those_of_the_cpu(void **state) {
  (void)state;
  const int length = emulated ? PROMPT + 24 : MOST; /* the emulation is slow */
  golden g = golden_read("mini-target");
  int32_t token[MOST + 1], all[MOST];
  assert_true(g.cases[0].n >= PROMPT);
  memcpy(token, g.cases[0].ids, PROMPT * sizeof *token);
  model *m;
  ok(model_open(g.model, &m, &err));
  rig cpu = rig_open(&dt_cpu_ops, NULL, 2, model_desc(m), 1, MOST),
      gpu = rig_open(&dt_cuda_ops, NULL, 1, model_desc(m), 1, MOST);

  run_text(&gpu, token, 0, PROMPT - 1, NULL);
  for (int p = PROMPT - 1; p < length - 1; p++) {
    dt_out out = {.want = DT_WANT_ARGMAX, .n = 1, .row = (int32_t[]){0}, .argmax = &token[p + 1]};
    run_text(&gpu, token + p, p, 1, &out);
  }
  for (int p = 0; p < length; p++) all[p] = p;
  float *logits = malloc(sizeof *logits * (size_t)length * (size_t)cpu.vocab);
  dt_out out = {.want = DT_WANT_LOGITS, .n = length, .row = all, .logits = logits};
  run_text(&cpu, token, 0, length, &out);
  int same = 0;
  for (int p = PROMPT - 1; p < length - 1; p++) {
    const float *row = logits + (size_t)p * (size_t)cpu.vocab;
    int best = 0;
    for (int v = 1; v < cpu.vocab; v++)
      if (row[v] > row[best]) best = v;
    same += best == token[p + 1];
    if (row[best] - row[token[p + 1]] > TOLERANCE)
      fail_msg("position %d: token %d, the CPU's is %d and %g better", p + 1, token[p + 1], best,
               (double)(row[best] - row[token[p + 1]]));
  }
  assert_true(same >= (length - PROMPT) * 9 / 10);
  free(logits);
  rig_close(&cpu), rig_close(&gpu);
  model_close(m);
  golden_free(&g);
}

int main(int argc, char **argv) {
  cuda_device_or_skip();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_are_those_of_the_cpu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
