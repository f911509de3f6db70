/* Any bytes as a GGUF file, and as a model in one. What is accepted must lie inside the file. */
#include "fuzz.h"

#include "model/gguf.h"
#include "model/model.h"

#include <math.h>

static volatile char byte; /* reading is what could crash */

static void read_values(const gguf *g) {
  static const char *const key[] = {"a", "general.alignment", "general.architecture", "tokenizer.ggml.tokens"};
  for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
    const gguf_value *v = gguf_find(g, key[k]);
    for (uint64_t i = 0; v && i < v->count && i < 1000; i++) {
      int64_t integer;
      double number;
      size_t len = 0;
      if (gguf_integer(v, i, &integer) && !gguf_number(v, i, &number)) abort();
      const char *text = gguf_string(v, i, &len);
      for (size_t j = 0; j < len; j++) byte = text[j];
    }
  }
}

static void read_rows(const dt_matrix *m) {
  dt_error err;
  if (!m->source) return;
  void *rows = malloc((size_t)m->rows * dt_row_bytes(m->dtype, (size_t)m->cols) + 1);
  if (!rows || dt_read_rows(m, 0, m->rows, rows, &err)) abort();
  free(rows);
}

static void check_freq(const float *freq, int dims) {
  for (int j = 0; freq && j < dims / 2; j++)
    if (!isfinite(freq[j])) abort();
}

static void read_model(const dt_model_desc *d) {
  const dt_shape *s = &d->shape;
  read_rows(&d->embed), read_rows(&d->unembed), read_rows(&d->final_norm);
  read_rows(&d->inputs_embed), read_rows(&d->inputs_proj), read_rows(&d->inputs_norm);
  for (int i = 0; i < s->layers; i++) {
    const dt_layer *l = &d->layer[i];
    const dt_matrix *m = &l->norm1; /* a layer begins with its matrices */
    for (int j = 0; j < DT_LAYER_MATRICES; j++) read_rows(m + j);
    for (int e = 0; l->expert && e < s->experts; e++)
      read_rows(&l->expert[e].gate), read_rows(&l->expert[e].up), read_rows(&l->expert[e].down);
    if (l->window < 0 || l->keys_of < 0 || l->keys_of > i) abort();
  }
  check_freq(d->inv_freq, s->rotary_dims);
  check_freq(d->local_freq, s->local_dims ? s->local_dims : s->rotary_dims);
}

static void open_model(const char *path) {
  model *m;
  dt_error err;
  dt_status status = model_open(path, &m, &err);
  if (status) {
    fuzz_check_failure(status, &err, path);
    return;
  }
  read_model(model_desc(m));
  model_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  gguf *g;
  dt_error err;
  dt_status status = gguf_open_bytes("model.gguf", bytes, size, &g, &err);
  if (status) {
    fuzz_check_failure(status, &err, "model.gguf");
    return 0;
  }
  read_values(g);
  const gguf_tensor *t = gguf_find_tensor(g, "a");
  void *data = t ? malloc(t->size + 1) : NULL;
  if (data && source_read(t->source, t->offset, data, t->size, &err) != DT_OK) abort();
  free(data);
  gguf_close(g);
  open_model(fuzz_file(bytes, size));
  return 0;
}
