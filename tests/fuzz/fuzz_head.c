/* Any bytes as the files of a draft head: a GGUF file, or config.json, a zero byte and model.safetensors. What is
 * accepted has the shapes that a backend checks, and its tensors can be read. */
#include "fuzz.h"

#include "backend/check.h"
#include "model/head.h"

static const dt_shape target = {.vocab = 16, .layers = 8, .hidden = 8, .context = 32};

static void put(const char *folder, const char *name, const uint8_t *bytes, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) abort();
}

static char folder[] = "/dev/shm/fuzz_head.XXXXXX";

static void remove_folder(void) {
  char path[64];
  snprintf(path, sizeof path, "%s/config.json", folder), unlink(path);
  snprintf(path, sizeof path, "%s/model.safetensors", folder), unlink(path);
  rmdir(folder);
}

static const char *fuzz_folder(const uint8_t *bytes, size_t size) {
  static bool made;
  if (!made && (!mkdtemp(folder) || atexit(remove_folder))) abort();
  made = true;
  const uint8_t *end = memchr(bytes, 0, size);
  size_t config = end ? (size_t)(end - bytes) : size;
  put(folder, "config.json", bytes, config);
  put(folder, "model.safetensors", end ? end + 1 : bytes, end ? size - config - 1 : 0);
  return folder;
}

static void read_rows(const dt_matrix *m, dt_error *err) {
  if (!m->source) return;
  void *rows = malloc((size_t)m->rows * dt_row_bytes(m->dtype, (size_t)m->cols) + 1);
  if (!rows || dt_read_rows(m, 0, m->rows, rows, err)) abort();
  free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (!size) return 0;
  const char *path = size > 4 && !memcmp(bytes, "GGUF", 4) ? fuzz_file(bytes, size) : fuzz_folder(bytes, size);
  head *h;
  dt_error err;
  bool is;
  head_is(path, &is, NULL);
  dt_status status = head_open(path, &(dt_rope){0}, &target, NULL, &h, &err);
  if (status) {
    fuzz_check_failure(status, &err, path);
    return 0;
  }
  const dt_head_desc *d = head_desc(h);
  if (check_head(d, &target, &err)) abort();
  read_rows(&d->fc, &err), read_rows(&d->before, &err), read_rows(&d->after, &err), read_rows(&d->post, &err);
  for (int i = 0; i < d->model.shape.layers; i++) {
    const dt_layer *l = &d->model.layer[i];
    read_rows(&l->q, &err), read_rows(&l->down, &err), read_rows(&l->attention_mix, &err),
        read_rows(&l->mlp_mix_base, &err);
  }
  for (int i = 0; i < d->distances; i++) read_rows(&d->output[i], &err);
  head_close(h);
  return 0;
}
