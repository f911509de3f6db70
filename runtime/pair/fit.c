/* Decides from their files which drafts belong to a target: see dt_draft_fits in dtrun.h. */
#include "dtrun.h"
#include "model/checkpoint.h"
#include "model/gguf_name.h"
#include "model/head.h"
#include "model/model.h"
#include "system/asprintf.h"
#include "system/hash.h"
#include "system/need.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Hashes decide only which draft belongs to a target. A file forged to have another's hash costs speed, but changes no
 * token. */

/* ---- a model ----------------------------------------------------------------------------------------------------- */

/* Hashes a norm in bfloat16, rounded to even, two bytes a number: quantized models keep their norms unchanged. */
static dt_status hash_norm(const dt_matrix *norm, uint64_t *out, dt_error *err) {
  float *numbers = malloc(sizeof *numbers * (size_t)norm->rows);
  if (!numbers) return dt_fail_memory(err, "a norm", sizeof *numbers * (size_t)norm->rows);
  dt_status s = dt_read_vector(norm, numbers, err);
  *out = HASH_START;
  for (int i = 0; !s && i < norm->rows; i++) {
    uint32_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    *out = hash_bytes(*out, (unsigned char[]){bits & 0xff, bits >> 8 & 0xff}, 2);
  }
  free(numbers);
  return s;
}

static uint64_t hash_texts(uint64_t hash, const gguf_value *v) {
  for (uint64_t i = 0; v && i < v->count; i++) {
    size_t len;
    const char *text = gguf_string(v, i, &len);
    if (text) hash = hash_bytes(hash_bytes(hash, &len, sizeof len), text, len);
  }
  return hash;
}

/* Returns the size of a file; 0: there is none. */
static uint64_t hash_file(const char *folder, const char *name) {
  char *path, bytes[4096];
  if (dt_asprintf(&path, "%s/%s", folder, name) < 0) return 0;
  FILE *file = fopen(path, "rb");
  free(path);
  if (!file) return 0;
  uint64_t hash = HASH_START;
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, file)) > 0;) hash = hash_bytes(hash, bytes, n);
  fclose(file);
  return hash;
}

static uint64_t hash_tokenizer(const char *path, const gguf *file) {
  static const char *const parts[] = {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
                                      "tokenizer.ggml.merges"};
  if (!file) return hash_file(path, "tokenizer.json");
  uint64_t hash = HASH_START;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = hash_texts(hash, gguf_find(file, parts[i]));
  return hash;
}

static uint64_t file_bytes(const char *path) {
  struct stat info;
  return stat(path, &info) ? 0 : (uint64_t)info.st_size;
}

/* Returns the bytes of the file, of all parts of the model to which it belongs, or of the folder's safetensors. */
static uint64_t count_bytes(const char *path, bool is_file) {
  struct stat info;
  uint64_t bytes = 0;
  int number, count;
  char part[4096];
  DIR *dir = is_file ? NULL : opendir(path);
  if (is_file && gguf_part(path, &number, &count)) {
    for (int i = 1; i <= count && gguf_part_path(path, i, part, sizeof part); i++) bytes += file_bytes(part);
  } else if (is_file) {
    bytes = file_bytes(path);
  }
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    const char *end = strrchr(entry->d_name, '.');
    if (end && !strcmp(end, ".safetensors") && !fstatat(dirfd(dir), entry->d_name, &info, 0))
      bytes += (uint64_t)info.st_size;
  }
  if (dir) closedir(dir);
  return bytes;
}

/* The type of most numbers in the layers. */
static const char *count_types(const dt_model_desc *d) {
  uint64_t numbers[DT_TYPES] = {0};
  int most = 0;
  for (int i = 0; i < d->shape.layers; i++) {
    const dt_layer *l = &d->layer[i];
    const dt_matrix *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
      if (all[k]->source) numbers[all[k]->dtype] += (uint64_t)all[k]->rows * (uint64_t)all[k]->cols;
  }
  for (int i = 1; i < DT_TYPES; i++)
    if (numbers[i] > numbers[most]) most = i;
  return dt_type_of((dt_dtype)most)->name;
}

static uint64_t bytes_of(const dt_matrix *m) {
  return m->source ? (uint64_t)m->rows * dt_row_bytes(m->dtype, (size_t)m->cols) : 0;
}

/* Counts the bytes that passes read: see dt_model_facts. */
static void count_read(const dt_model_desc *d, dt_model_facts *facts) {
  facts->output = bytes_of(&d->unembed);
  facts->pass = facts->output;
  facts->experts = d->shape.experts, facts->chosen_experts = d->shape.chosen;
  for (int i = 0; i < d->shape.layers; i++) {
    const dt_layer *l = &d->layer[i];
    const dt_matrix *all = (const dt_matrix *)l;
    for (int k = 0; k < DT_LAYER_MATRICES; k++) facts->pass += bytes_of(&all[k]);
    for (int k = 0; l->expert && k < d->shape.experts; k++)
      facts->all_experts += bytes_of(&l->expert[k].gate) + bytes_of(&l->expert[k].up) + bytes_of(&l->expert[k].down);
  }
}

static void copy_name(const gguf *file, dt_model_facts *facts) {
  size_t len = 0;
  const char *name = file ? gguf_string(gguf_find(file, "general.name"), 0, &len) : NULL;
  const size_t most = sizeof facts->name - 1;
  if (name) snprintf(facts->name, sizeof facts->name, "%.*s", (int)(len < most ? len : most), name);
}

dt_status dt_model_look(const char *path, dt_model_facts *facts, dt_error *err) {
  NEED(path, "path");
  model *m = NULL;
  dt_status s = model_open(path, &m, err);
  if (!s && facts) {
    *facts = (dt_model_facts){.family = model_family(m),
                              .tokenizer = hash_tokenizer(path, model_gguf(m)),
                              .bytes = count_bytes(path, model_gguf(m) != NULL),
                              .type = count_types(model_desc(m))};
    copy_name(model_gguf(m), facts);
    count_read(model_desc(m), facts);
    s = hash_norm(&model_desc(m)->final_norm, &facts->norm, err);
  }
  model_close(m);
  return s;
}

bool dt_has_mtp(const char *path) {
  model *m = NULL;
  head *h = NULL;
  bool has =
      path && !model_open(path, &m, NULL) && !head_open_own(path, &(dt_rope){0}, &model_desc(m)->shape, &h, NULL);
  head_close(h);
  model_close(m);
  return has;
}

/* ---- drafts that fit it ------------------------------------------------------------------------------------------ */

/* Whether the folder's config.json names it as a head of a target with this norm. */
static bool is_head_of(const char *folder, uint64_t norm) {
  checkpoint c;
  char name[17];
  if (checkpoint_open(folder, &c, NULL)) return false;
  const cJSON *target = cJSON_GetObjectItemCaseSensitive(c.json, "dtrun_target");
  const char *said = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(target, "final_norm"));
  snprintf(name, sizeof name, "%016" PRIx64, norm);
  bool is = said && !strcmp(said, name);
  checkpoint_close(&c);
  bool is_head = false;
  return is && !head_is(folder, &is_head, NULL) && is_head;
}

static bool is_small(const dt_model_facts *target, uint64_t bytes) { return bytes > 0 && bytes <= target->bytes / 2; }

/* A draft fits if it has the target's family and tokenizer, at most half of its bytes, and is not the target itself in
 * fewer bits. */
bool dt_model_fits(const dt_model_facts *target, const dt_model_facts *draft) {
  return target && draft && is_small(target, draft->bytes) && draft->family == target->family &&
         draft->norm != target->norm && draft->tokenizer == target->tokenizer && draft->tokenizer;
}

dt_status dt_head_look(const char *path, bool *is, uint64_t *bytes, dt_error *err) {
  NEED(path, "path");
  NEED(is, "is");
  NEED(bytes, "bytes");
  struct stat info;
  *bytes = count_bytes(path, stat(path, &info) || !S_ISDIR(info.st_mode));
  return head_is(path, is, err);
}

dt_fit dt_draft_fits(const dt_model_facts *target, const char *path, uint64_t *bytes) {
  struct stat info;
  if (bytes) *bytes = 0;
  if (!target || !path || !bytes) return DT_FITS_NOT;
  bool folder = !stat(path, &info) && S_ISDIR(info.st_mode);
  *bytes = count_bytes(path, !folder);
  if (folder && is_head_of(path, target->norm)) return DT_FITS_HEAD;
  dt_model_facts draft;
  if (!is_small(target, *bytes) || dt_model_look(path, &draft, NULL)) return DT_FITS_NOT;
  return dt_model_fits(target, &draft) ? DT_FITS_MODEL : DT_FITS_NOT;
}
