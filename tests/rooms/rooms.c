/* In a tree with the synthetic family, type and formats: they work, and nobody else had to know of them. */
#include "cpu.h"
#include "model/model.h"
#include "reference_forward.h"
#include "rig.h"
#include "temp_files.h"

#include <stdio.h>

enum { V = 50, H = 48, I = 2 * H, LAYERS = 2, N = 9 };
#define CONFIG "{\"model_type\":\"toy\",\"n_vocab\":50,\"n_embd\":48,\"n_layer\":2,\"n_head\":3}"

/* ---- a checkpoint ------------------------------------------------------------------------------------------------ */

typedef struct {
  char header[8192];
  float numbers[200000];
  int used;
  uint64_t state;
} file;

static void add(file *f, const char *name, int rows, int cols) {
  int n = rows * (cols ? cols : 1), first = f->used;
  for (; f->used < first + n; f->used++)
    f->numbers[f->used] =
        ((float)(random_next(&f->state) & 0xffff) / 32768.0f - 1.0f) * (cols ? 0.3f : 0.5f) + (cols ? 0.0f : 1.0f);
  char shape[32];
  snprintf(shape, sizeof shape, cols ? "%d,%d" : "%d", rows, cols);
  size_t at = strlen(f->header);
  snprintf(f->header + at, sizeof f->header - at,
           "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%d,%d]}", first ? "," : "{", name, shape,
           4 * first, 4 * f->used);
}

static char *write_checkpoint(void) {
  static file f;
  char name[32], *folder = temp_folder();
  f = (file){.state = 3};
  add(&f, "toy.tokens", V, H), add(&f, "toy.scale", H, 0);
  for (int l = 0; l < LAYERS; l++) {
    static const struct {
      const char *name;
      int rows, cols;
    } all[] = {{"scale.a", H, 0}, {"scale.b", H, 0}, {"query", H, H}, {"key", H, H},
               {"value", H, H},   {"mix", H, H},     {"wide", I, H},  {"narrow", H, I}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      snprintf(name, sizeof name, "toy.%d.%s", l, all[i].name);
      add(&f, name, all[i].rows, all[i].cols);
    }
  }
  strcat(f.header, "}");
  uint64_t length = strlen(f.header);
  size_t size = 8 + length + 4 * (size_t)f.used;
  char *bytes = malloc(size);
  memcpy(bytes, &length, 8), memcpy(bytes + 8, f.header, length),
      memcpy(bytes + 8 + length, f.numbers, 4 * (size_t)f.used);
  temp_write(folder, "model.safetensors", bytes, size);
  temp_write(folder, "config.json", CONFIG, strlen(CONFIG));
  free(bytes);
  return folder;
}

/* ---- what it gives ----------------------------------------------------------------------------------------------- */

static const int32_t text[N] = {7, 3, 49, 0, 21, 7, 7, 30, 12};

/* The largest difference of the CPU's logits from `expected`, [N][V], and what it says its weights are held in. */
static double difference(const dt_model_desc *d, const char *dtype, const double *expected, char held[16]) {
  rig r = rig_open_rounded(&dt_cpu_ops, (dt_backend_options){.threads = 2, .cache_dtype = "f32"}, d,
                           (dt_holding){.dtype = dtype}, 2, 16);
  snprintf(held, 16, "%s", r.ops->weight_dtype(r.weights));
  row_list all = {0};
  for (int p = 0; p < N; p++) row_add_plain(&all, 0, text[p], p);
  float *logits = rig_run(&r, &all, true);
  double worst = 0;
  for (int i = 0; i < N * V; i++) worst = fmax(worst, fabs(logits[i] - expected[i]));
  for (int p = 0; p < N; p++) { /* each row alone */
    row_list one = {0};
    row_add_plain(&one, 1, text[p], p);
    float *alone = rig_run(&r, &one, true);
    assert_memory_equal(alone, logits + p * V, V * sizeof *alone);
    free(alone);
  }
  free(logits);
  rig_close(&r);
  return worst;
}

static void the_family_is_read_and_computed(void **state) {
  const dt_model_desc *d = *state;
  char held[16];
  assert_false(d->shape.parallel_residual);
  double *expected = reference_forward(d, text, N);
  assert_true(difference(d, NULL, expected, held) < 1e-4);
  assert_string_equal(held, "f32");
  free(expected);
}

static void it_is_said_to_be_supported(void **state) {
  (void)state;
  static const char *const configs[] = {"{\"model_type\":\"opt\"}",
                                        "{\"model_type\":\"toy\",\"architectures\":[\"OPTForCausalLM\"]}"};
  for (int i = 0; i < 2; i++) {
    char *folder = temp_folder();
    model *m;
    temp_write(folder, "config.json", configs[i], strlen(configs[i]));
    fails(model_open(folder, &m, &err), DT_EINPUT, i ? "architecture \"OPTForCausalLM\" is not" : ", \"toy\"");
    temp_remove(folder);
  }
}

/* A matrix in blocks of the synthetic type. */
static dt_matrix encoded(const dt_matrix *m, dt_source *source) {
  int n = m->rows * m->cols;
  double *numbers = reference_numbers(m);
  char *bytes = malloc(dt_row_bytes(DT_TOY, (size_t)n));
  float *narrow = malloc((size_t)n * sizeof *narrow);
  for (int i = 0; i < n; i++) narrow[i] = (float)numbers[i];
  dt_round_to(DT_TOY)(narrow, (size_t)n, bytes);
  free(narrow);
  free(numbers);
  *source = source_of_memory("toy", bytes, dt_row_bytes(DT_TOY, (size_t)n));
  return (dt_matrix){
      .source = source, .dtype = DT_TOY, .rows = m->rows, .cols = m->cols, .group = m->rows, .stride = m->rows};
}

static void the_type_is_held_as_it_is_and_rounded_to(void **state) {
  dt_model_desc d = *(const dt_model_desc *)*state;
  dt_layer layer[LAYERS];
  dt_source source[1 + 6 * LAYERS];
  int used = 0;
  memcpy(layer, d.layer, sizeof layer);
  d.layer = layer;
  d.embed = d.unembed = encoded(&d.embed, &source[used++]);
  for (int l = 0; l < LAYERS; l++) {
    dt_matrix *all[] = {&layer[l].q, &layer[l].k, &layer[l].v, &layer[l].o, &layer[l].up, &layer[l].down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = encoded(all[i], &source[used++]);
  }
  char held[16];
  double *expected = reference_forward(&d, text, N);
  assert_true(difference(&d, NULL, expected, held) < 1e-4);
  assert_string_equal(held, "toy");
  assert_true(difference(*state, "toy", expected, held) < 1e-4); /* the weights as they were, rounded when loaded */
  assert_string_equal(held, "toy");
  free(expected);
  for (int i = 0; i < used; i++) free((void *)source[i].bytes);
}

int main(void) {
  char *folder = write_checkpoint();
  model *m = NULL;
  dt_error err = {0};
  if (model_open(folder, &m, &err) != DT_OK) return fprintf(stderr, "%s\n", err.message), 1;
  void *d = (void *)model_desc(m);
  const struct CMUnitTest tests[] = {
      {"the_family_is_read_and_computed", the_family_is_read_and_computed, NULL, NULL, d},
      {"it_is_said_to_be_supported", it_is_said_to_be_supported, NULL, NULL, d},
      {"the_type_is_held_as_it_is_and_rounded_to", the_type_is_held_as_it_is_and_rounded_to, NULL, NULL, d},
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  model_close(m);
  temp_remove(folder);
  return failed;
}
