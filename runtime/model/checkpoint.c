/* Distinguishes the formats of checkpoints; no other file needs to. See checkpoint.h. */
#include "model/checkpoint.h"

#include "model/gguf_keys.h"
#include "system/asprintf.h"
#include "system/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the model is a folder; otherwise it is a file. */
static dt_status look(const char *path, bool *folder, dt_error *err) {
  struct stat info;
  if (stat(path, &info) != 0) {
    const char *end = strrchr(path, '.'), *what = end && !strcmp(end, ".gguf") ? "file" : "folder";
    if (errno == ENOENT || errno == ENOTDIR) return dt_fail(err, DT_EINPUT, "no such %s: %s", what, path);
    return dt_fail(err, errno == ENAMETOOLONG ? DT_EINPUT : DT_EIO, "%.200s: %s", path, strerror(errno));
  }
  *folder = S_ISDIR(info.st_mode);
  return DT_OK;
}

/* Reads a file of the folder into *json; without such a file, *path is NULL. */
static dt_status read_json(const char *folder, const char *name, char **path, cJSON **json, dt_error *err) {
  if (dt_asprintf(path, "%s/%s", folder, name) < 0) {
    *path = NULL;
    return dt_fail_memory(err, "a path", strlen(folder) + strlen(name) + 2);
  }
  if (access(*path, F_OK) == 0) return json_read_object(*path, json, err);
  free(*path);
  *path = NULL;
  return DT_OK;
}

static dt_status open_folder(checkpoint *c, dt_error *err) {
  char *generation = NULL;
  dt_status status = read_json(c->path, "config.json", &c->keys_path, &c->json, err);
  if (status == DT_OK && !c->keys_path) status = dt_fail(err, DT_EINPUT, "no config.json in %s", c->path);
  if (status == DT_OK) status = read_json(c->path, "generation_config.json", &generation, &c->generation, err);
  free(generation);
  return status;
}

static dt_status open_file(checkpoint *c, dt_error *err) {
  c->keys_path = strdup(c->path);
  if (!c->keys_path) return dt_fail_memory(err, "a path", strlen(c->path) + 1);
  dt_status status = gguf_open(c->path, &c->gguf, err);
  return status == DT_OK ? gguf_keys(c->gguf, &c->json, err) : status;
}

dt_status checkpoint_open(const char *path, checkpoint *out, dt_error *err) {
  checkpoint c = {.path = path};
  bool folder = false;
  dt_status status = look(path, &folder, err);
  if (status == DT_OK) status = folder ? open_folder(&c, err) : open_file(&c, err);
  if (status == DT_OK)
    *out = c;
  else
    checkpoint_close(&c);
  return status;
}

dt_status checkpoint_open_tensors(checkpoint *c, dt_error *err) {
  return c->gguf ? DT_OK : st_open_folder(c->path, &c->weights, err);
}

void checkpoint_close(checkpoint *c) {
  st_close(c->weights);
  gguf_close(c->gguf);
  cJSON_Delete(c->json);
  cJSON_Delete(c->generation);
  free(c->keys_path);
}

keys checkpoint_keys(const checkpoint *c, dt_error *err) {
  return (keys){.path = c->keys_path,
                .json = c->json,
                .generation = c->generation,
                .gguf = c->gguf != NULL,
                .err = err,
                .factors = c->gguf && gguf_find_tensor(c->gguf, ROTATION_LONG),
                .rope = c->rope};
}

/* A tensor of either format, rows first. */
typedef struct {
  const dt_source *source;
  uint64_t offset;
  const char *type;
  int rank;
  uint64_t shape[4];
} tensor;

static const char *name_of(const finder *f, const char *hf, const char *in_gguf, char name[160]) {
  int used = f->from->gguf ? 0 : snprintf(name, 160, "%s", f->prefix);
  snprintf(name + used, (size_t)(160 - used), f->from->gguf ? in_gguf : hf, f->layer);
  return name;
}

static bool find_safetensor(const st *weights, const char *name, tensor *out) {
  const st_tensor *t = st_find(weights, name);
  if (!t) return false;
  *out = (tensor){t->source, t->offset, t->dtype, t->rank, {0}};
  for (int i = 0; i < t->rank && i < 4; i++) out->shape[i] = t->shape[i];
  return true;
}

/* GGUF lists the length of a row first. */
static bool find_in_gguf(const gguf *file, const char *name, tensor *out) {
  const gguf_tensor *t = gguf_find_tensor(file, name);
  if (!t) return false;
  *out = (tensor){t->source, t->offset, t->type, t->rank, {0}};
  for (int i = 0; i < t->rank; i++) out->shape[i] = t->ne[t->rank - 1 - i];
  return true;
}

static bool find_tensor(const finder *f, const char *name, tensor *out) {
  return f->from->gguf ? find_in_gguf(f->from->gguf, name, out) : find_safetensor(f->from->weights, name, out);
}

bool find_is_there(const finder *f, const char *hf, const char *in_gguf) {
  char name[160];
  tensor t;
  if (!(f->from->gguf ? in_gguf : hf)) return false;
  return find_tensor(f, name_of(f, hf, in_gguf, name), &t);
}

/* In safetensors files quantized types are rejected, since their sizes are not checked there. */
static dt_dtype type_of(const finder *f, const tensor *t) {
  dt_dtype dtype = dt_type_named(t->type);
  return !f->from->gguf && dtype != DT_TYPES && dt_type_of(dtype)->numbers > 1 ? DT_TYPES : dtype;
}

uint64_t find_rows(const finder *f, const char *hf, const char *in_gguf) {
  char name[160];
  tensor t;
  return find_tensor(f, name_of(f, hf, in_gguf, name), &t) && t.rank > 0 ? t.shape[0] : 0;
}

uint64_t find_columns(const finder *f, const char *hf, const char *in_gguf) {
  char name[160];
  tensor t;
  bool there = find_tensor(f, name_of(f, hf, in_gguf, name), &t);
  return !there || t.rank < 1 ? 0 : t.rank < 2 ? 1 : t.shape[1];
}

/* Finds a tensor of that shape; false: it is missing, or has another shape. */
static bool found(finder *f, int rank, const uint64_t *want, const char *hf, const char *in_gguf, char name[160],
                  tensor *t) {
  if (f->status != DT_OK) return false;
  if (!find_tensor(f, name_of(f, hf, in_gguf, name), t)) {
    f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s is missing", f->from->path, name);
    return false;
  }
  if (t->rank == rank && !memcmp(t->shape, want, (size_t)rank * sizeof *want)) return true;
  char is[128], should[64];
  f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s: found shape %s, expected %s by %s", t->source->name, name,
                      st_shape_text(t->shape, t->rank < 4 ? t->rank : 4, is, sizeof is),
                      st_shape_text(want, rank, should, sizeof should), f->from->gguf ? "its keys" : "config.json");
  return false;
}

static dt_matrix find(finder *f, int rank, const uint64_t *want, const char *hf, const char *in_gguf) {
  dt_matrix none = {0};
  char name[160];
  tensor t;
  if (!found(f, rank, want, hf, in_gguf, name, &t)) return none;
  dt_dtype dtype = type_of(f, &t);
  if (dtype == DT_TYPES) {
    f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s: found type %s, expected F32, F16 or BF16", t.source->name,
                        name, t.type);
    return none;
  }
  int rows = (int)(rank > 2 ? want[0] * want[1] : want[0]), cols = rank > 1 ? (int)want[rank - 1] : 1;
  return (dt_matrix){.source = t.source,
                     .offset = t.offset,
                     .dtype = dtype,
                     .rows = rows,
                     .cols = cols,
                     .group = rows,
                     .stride = rows};
}

dt_matrix find_matrix(finder *f, int rows, int cols, const char *hf, const char *in_gguf) {
  return find(f, 2, (uint64_t[]){(uint64_t)rows, (uint64_t)cols}, hf, in_gguf);
}

dt_matrix find_matrices(finder *f, int n, int rows, int cols, const char *hf, const char *in_gguf) {
  return find(f, 3, (uint64_t[]){(uint64_t)n, (uint64_t)rows, (uint64_t)cols}, hf, in_gguf);
}

dt_matrix find_across(finder *f, int n, int rows, int cols, const char *hf) {
  dt_matrix m = find(f, 3, (uint64_t[]){(uint64_t)n, (uint64_t)cols, (uint64_t)rows}, hf, NULL);
  m.rows = m.group = m.stride = m.across = rows, m.cols = cols;
  return m;
}

dt_matrix find_blocks(finder *f, int n, int rows, int cols, const char *blocks, const char *scales) {
  const uint64_t want[] = {(uint64_t)n, (uint64_t)rows, (uint64_t)(cols / 32), 16};
  char name[160];
  tensor t[2];
  if (f->status == DT_OK && cols % 32)
    f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s: rows of %d numbers, expected whole blocks of 32",
                        f->from->path, name_of(f, blocks, NULL, name), cols);
  for (int i = 0; i < 2; i++) {
    if (!found(f, 4 - i, want, i ? scales : blocks, NULL, name, &t[i])) return (dt_matrix){0};
    if (strcmp(t[i].type, "U8")) {
      f->status =
          dt_fail(f->err, DT_EINPUT, "%s: tensor %s: found type %s, expected U8", t[i].source->name, name, t[i].type);
      return (dt_matrix){0};
    }
  }
  return (dt_matrix){.source = t[0].source,
                     .offset = t[0].offset,
                     .dtype = dt_type_named("MXFP4"),
                     .rows = n * rows,
                     .cols = cols,
                     .group = n * rows,
                     .stride = n * rows,
                     .scales = t[1].source,
                     .scales_offset = t[1].offset};
}

dt_matrix find_vectors(finder *f, int n, int size, const char *hf, const char *in_gguf) {
  dt_matrix m = find(f, 2, (uint64_t[]){(uint64_t)n, (uint64_t)size}, hf, in_gguf);
  m.rows = m.group = m.stride = n * size, m.cols = 1;
  return m;
}

dt_matrix find_vector(finder *f, int n, const char *hf, const char *in_gguf) {
  return find(f, 1, (uint64_t[]){(uint64_t)n}, hf, in_gguf);
}

void find_stretch(finder *f, int pairs, float *inv_freq) {
  const rotation *r = f->rotation;
  bool listed = r && r->tensor;
  const char *name = listed ? r->tensor : "rope_freqs.weight";
  if (r && r->replaced) return;
  if (f->status == DT_OK && !listed && find_is_there(f, NULL, ROTATION_LONG))
    f->status = dt_fail(f->err, DT_EINPUT,
                        "%s: tensor " ROTATION_LONG ": expected only in a model whose rotation has the type longrope",
                        f->from->path);
  if (!listed && !find_is_there(f, NULL, name)) return;
  dt_matrix m = find_vector(f, pairs, NULL, name);
  float *by = calloc((size_t)pairs + 1, sizeof *by);
  if (!by) f->status = dt_fail_memory(f->err, "a rotation", (size_t)pairs * sizeof *by);
  if (f->status == DT_OK) f->status = dt_read_vector(&m, by, f->err);
  for (int j = 0; f->status == DT_OK && j < pairs; j++) {
    if (!(by[j] >= ROTATION_LEAST && by[j] <= ROTATION_MOST))
      f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s: element %d is %g, expected a factor from %g to %g",
                          f->from->path, name, j, by[j], (double)ROTATION_LEAST, (double)ROTATION_MOST);
    inv_freq[j] /= by[j];
  }
  free(by);
}

static int64_t integer_at(const char *bytes, size_t size, int i) {
  int64_t wide = 0;
  int32_t narrow;
  if (size == 8) memcpy(&wide, bytes + (size_t)i * size, size);
  if (size == 4) memcpy(&narrow, bytes + (size_t)i * size, size), wide = narrow;
  return size == 1 ? bytes[i] != 0 : wide;
}

void find_integers(finder *f, int n, const char *hf, const char *in_gguf, int64_t *out) {
  static const struct {
    const char *type;
    size_t size;
  } known[] = {{"I64", 8}, {"I32", 4}, {"BOOL", 1}};
  char name[160];
  tensor t;
  if (!found(f, 1, (uint64_t[]){(uint64_t)n}, hf, in_gguf, name, &t)) return;
  size_t size = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].type, t.type)) size = known[i].size;
  if (!size) {
    f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor %s: found type %s, expected I64, I32 or BOOL", t.source->name,
                        name, t.type);
    return;
  }
  char *bytes = malloc((size_t)n * size);
  f->status = bytes ? source_read(t.source, t.offset, bytes, (size_t)n * size, f->err)
                    : dt_fail_memory(f->err, "a tensor", (size_t)n * size);
  for (int i = 0; f->status == DT_OK && i < n; i++) out[i] = integer_at(bytes, size, i);
  free(bytes);
}
