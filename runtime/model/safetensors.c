/* The format: u64 length of the header; the header, a JSON object: name -> dtype, shape, data_offsets; then the data.
 * The tensors must tile the data exactly: no holes, no overlap, nothing after the last. See safetensors.h. */
#include "model/safetensors.h"

#include "system/asprintf.h"
#include "system/json_file.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#define MAX_HEADER 100000000u        /* the reference implementation's limit */
#define MAX_WHOLE 9007199254740992.0 /* 2^53: JSON numbers are read as doubles, exact up to here */

#define SINGLE "model.safetensors"
#define MEDUSA "medusa_lm_head.safetensors" /* the name for a draft head of this kind */
#define INDEX "model.safetensors.index.json"

struct st {
  st_tensor **tensor; /* sorted by name after opening; each is one block with its shape and name */
  size_t n, capacity;
  dt_source *file; /* each has a malloc'd name */
  size_t n_files;
};

/* ---- one header -------------------------------------------------------------------------------------------------- */

/* Bytes per element; 0: an unknown type, for which only the place in the file can be checked. */
static unsigned dtype_size(const char *dtype) {
  static const struct {
    const char *name;
    unsigned size;
  } known[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
               {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, dtype)) return known[i].size;
  return 0;
}

static bool whole_number(const cJSON *item, uint64_t *out) {
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= MAX_WHOLE)) return false;
  *out = (uint64_t)item->valuedouble;
  return (double)*out == item->valuedouble;
}

static bool is_utf8(const uint8_t *bytes, size_t size) {
  for (size_t at = 0; at < size;) {
    utf8proc_int32_t character;
    utf8proc_ssize_t used = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(size - at), &character);
    if (used <= 0) return false;
    at += (size_t)used;
  }
  return true;
}

static bool has_control_character(const char *name) {
  for (; *name; name++)
    if ((unsigned char)*name < 0x20 || *name == 0x7f) return true;
  return false;
}

char *st_shape_text(const uint64_t *shape, int rank, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64, i ? ", " : "", shape[i]);
  if (used < size) snprintf(text + used, size - used, "]");
  return text;
}

static dt_status add_slot(st *s, dt_error *err) {
  if (s->n < s->capacity) return DT_OK;
  size_t capacity = s->capacity ? 2 * s->capacity : 64;
  st_tensor **grown = realloc(s->tensor, capacity * sizeof *grown);
  if (!grown) return dt_fail_memory(err, "the list of tensors", capacity * sizeof *grown);
  s->tensor = grown;
  s->capacity = capacity;
  return DT_OK;
}

/* Adds a tensor to s for one entry of the header. Checks that it lies inside the file, whose data begin at byte `data`,
 * and that its size matches shape and dtype. */
static dt_status add_tensor(st *s, const dt_source *file, const cJSON *entry, uint64_t data, dt_error *err) {
  const char *name = entry->string, *path = file->name;
  uint64_t data_size = file->size - data;
  if (has_control_character(name))
    return dt_fail(err, DT_EINPUT, "%s: the header has a tensor name that contains a control character", path);
  const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(entry, "shape");
  const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
  if (!cJSON_IsString(dtype) || strlen(dtype->valuestring) >= sizeof s->tensor[0]->dtype ||
      has_control_character(dtype->valuestring))
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: expected a dtype like \"F16\"", path, name);
  if (!cJSON_IsArray(shape))
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: expected a shape, a list of whole numbers", path, name);
  uint64_t begin, end;
  if (cJSON_GetArraySize(offsets) != 2 || !cJSON_IsArray(offsets) || !whole_number(offsets->child, &begin) ||
      !whole_number(offsets->child->next, &end))
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: expected data_offsets, two whole numbers", path, name);
  if (end < begin)
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: data_offsets [%" PRIu64 ", %" PRIu64 "] end before they begin",
                   path, name, begin, end);
  if (end > data_size)
    return dt_fail(err, DT_EINPUT,
                   "%s: tensor %.120s: data_offsets [%" PRIu64 ", %" PRIu64 "], but the file has only %" PRIu64
                   " bytes of data: it is truncated, or its header is wrong",
                   path, name, begin, end, data_size);

  dt_status status = add_slot(s, err);
  if (status != DT_OK) return status;
  size_t rank = (size_t)cJSON_GetArraySize(shape), name_size = strlen(name) + 1;
  size_t bytes = sizeof(st_tensor) + rank * sizeof(uint64_t) + name_size;
  st_tensor *t = calloc(1, bytes);
  if (!t) return dt_fail_memory(err, "a tensor's entry", bytes);
  s->tensor[s->n++] = t;
  uint64_t *dims = (uint64_t *)(t + 1);
  *t = (st_tensor){.name = memcpy(dims + rank, name, name_size),
                   .source = file,
                   .rank = (int)rank,
                   .shape = dims,
                   .offset = data + begin,
                   .size = end - begin};
  strcpy(t->dtype, dtype->valuestring);

  uint64_t need = dtype_size(t->dtype);
  bool known = need > 0, overflow = false;
  int i = 0;
  for (const cJSON *dim = shape->child; dim; dim = dim->next, i++) {
    if (!whole_number(dim, &dims[i]))
      return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: dimension %d of its shape is not a whole number", path, name,
                     i);
    overflow |= __builtin_mul_overflow(need, dims[i], &need);
  }
  char text[128];
  st_shape_text(t->shape, t->rank, text, sizeof text);
  if (overflow)
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: %s %s has more bytes than a file can hold", path, name, t->dtype,
                   text);
  if (known && need != t->size)
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: found %" PRIu64 " bytes, expected %" PRIu64 " for %s %s", path,
                   name, t->size, need, t->dtype, text);
  return DT_OK;
}

static dt_status check_metadata(const char *path, const cJSON *metadata, dt_error *err) {
  bool right = cJSON_IsObject(metadata);
  for (const cJSON *item = right ? metadata->child : NULL; item; item = item->next) right &= cJSON_IsString(item) != 0;
  if (right) return DT_OK;
  return dt_fail(err, DT_EINPUT, "%s: __metadata__ of the header: expected an object of strings", path);
}

static int by_place(const void *a, const void *b) {
  const st_tensor *x = *(st_tensor *const *)a, *y = *(st_tensor *const *)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->size < y->size ? -1 : x->size > y->size;
}

/* Tensors first..n-1 of s belong to this file: sorts them by place, and checks that they tile the file from byte `data`
 * on. */
static dt_status check_tiling(st *s, size_t first, const dt_source *file, uint64_t data, dt_error *err) {
  if (s->n > first) qsort(s->tensor + first, s->n - first, sizeof *s->tensor, by_place);
  uint64_t at = 0, data_size = file->size - data;
  for (size_t i = first; i < s->n; i++) {
    const st_tensor *t = s->tensor[i];
    uint64_t begin = t->offset - data;
    if (begin != at)
      return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: data begins at %" PRIu64 ", expected %" PRIu64 " (%s)",
                     file->name, t->name, begin, at,
                     begin < at ? "it overlaps another tensor" : "there is a hole before it");
    at = begin + t->size;
  }
  if (at != data_size)
    return dt_fail(err, DT_EINPUT,
                   "%s: found %" PRIu64 " bytes of data, expected %" PRIu64 ": something follows the last tensor",
                   file->name, data_size, at);
  return DT_OK;
}

/* Adds the tensors that a header lists. The data begin after the header. */
static dt_status add_tensors(st *s, const dt_source *file, const char *header, uint64_t length, dt_error *err) {
  if (!is_utf8((const uint8_t *)header, length))
    return dt_fail(err, DT_EINPUT, "%s: the header is not valid UTF-8", file->name);
  char name[PATH_MAX + 32];
  snprintf(name, sizeof name, "%s: header", file->name);
  cJSON *json;
  dt_status status = json_parse_object(name, header, length, &json, err);
  if (status != DT_OK) return status;
  size_t first = s->n;
  uint64_t data = 8 + length;
  for (const cJSON *entry = json->child; entry && status == DT_OK; entry = entry->next)
    status = strcmp(entry->string, "__metadata__") ? add_tensor(s, file, entry, data, err)
                                                   : check_metadata(file->name, entry, err);
  cJSON_Delete(json);
  return status == DT_OK ? check_tiling(s, first, file, data, err) : status;
}

/* Adds the tensors of one file to s. After a failure the tensors added so far remain, for st_close. */
static dt_status add_file(st *s, const dt_source *file, dt_error *err) {
  uint8_t bytes[8];
  if (file->size < sizeof bytes)
    return dt_fail(err, DT_EINPUT, "%s: found %" PRIu64 " bytes, expected at least the 8 of the header's length",
                   file->name, file->size);
  dt_status status = source_read(file, 0, bytes, sizeof bytes, err);
  if (status != DT_OK) return status;
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
  if (length > MAX_HEADER)
    return dt_fail(err, DT_EINPUT, "%s: header length %" PRIu64 ", expected at most %u: not a safetensors file?",
                   file->name, length, MAX_HEADER);
  if (length > file->size - sizeof bytes)
    return dt_fail(err, DT_EINPUT,
                   "%s: header length %" PRIu64 ", but only %" PRIu64 " bytes follow: the file is truncated",
                   file->name, length, file->size - sizeof bytes);
  char *header = malloc(length + 1);
  if (!header) return dt_fail_memory(err, "a weight file's header", length);
  status = source_read(file, sizeof bytes, header, length, err);
  if (status == DT_OK) status = add_tensors(s, file, header, length, err);
  free(header);
  return status;
}

/* ---- all files --------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
  return strcmp((*(st_tensor *const *)a)->name, (*(st_tensor *const *)b)->name);
}

/* Sorts by name for st_find; a name may occur once. */
static dt_status check_names(st *s, dt_error *err) {
  if (s->n) qsort(s->tensor, s->n, sizeof *s->tensor, by_name);
  for (size_t i = 1; i < s->n; i++) {
    const st_tensor *a = s->tensor[i - 1], *b = s->tensor[i];
    if (strcmp(a->name, b->name)) continue;
    if (a->source == b->source)
      return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: listed twice in the header", a->source->name, a->name);
    return dt_fail(err, DT_EINPUT, "%s: tensor %.120s: also in %s, expected in one file only", a->source->name, a->name,
                   b->source->name);
  }
  return DT_OK;
}

static st *new_st(size_t n_files) {
  st *s = calloc(1, sizeof *s);
  if (s) s->file = calloc(n_files, sizeof *s->file);
  if (s && s->file) return s;
  free(s);
  return NULL;
}

void st_close(st *s) {
  if (!s) return;
  for (size_t i = 0; i < s->n; i++) free(s->tensor[i]);
  for (size_t i = 0; i < s->n_files; i++) {
    source_close(&s->file[i]);
    free((char *)s->file[i].name);
  }
  free(s->tensor);
  free(s->file);
  free(s);
}

const st_tensor *st_find(const st *s, const char *name) {
  st_tensor key = {.name = name}, *pointer = &key;
  st_tensor **found = s->n ? bsearch(&pointer, s->tensor, s->n, sizeof *s->tensor, by_name) : NULL;
  return found ? *found : NULL;
}

const char *st_tensor_at(const st *s, const char *file, uint64_t offset) {
  for (size_t i = 0; i < s->n; i++) {
    const st_tensor *t = s->tensor[i];
    if (!strcmp(t->source->name, file) && offset >= t->offset && offset - t->offset < t->size) return t->name;
  }
  return NULL;
}

/* Counts one more file of s, and adds its tensors. */
static dt_status check_file(st *s, dt_error *err) { return add_file(s, &s->file[s->n_files++], err); }

dt_status st_open_bytes(const char *name, const void *bytes, size_t size, st **out, dt_error *err) {
  st *s = new_st(1);
  char *copy = strdup(name);
  if (!s || !copy) {
    free(copy);
    st_close(s);
    return dt_fail_memory(err, "a weight file", sizeof *s);
  }
  s->file[0] = source_of_memory(copy, bytes, size);
  dt_status status = check_file(s, err);
  if (status == DT_OK) status = check_names(s, err);
  if (status != DT_OK) {
    st_close(s);
    return status;
  }
  *out = s;
  return DT_OK;
}

/* Opens FOLDER/NAME as one more file of s. */
static dt_status open_file(st *s, const char *folder, const char *name, dt_error *err) {
  char *path;
  if (dt_asprintf(&path, "%s/%s", folder, name) < 0)
    return dt_fail_memory(err, "a path", strlen(folder) + strlen(name) + 2);
  dt_status status = source_open(path, &s->file[s->n_files], err);
  if (status == DT_OK) return check_file(s, err);
  free(path);
  return status;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Lists the distinct file names of a weight_map, sorted, in name[]; each must be a plain name inside the folder. */
static dt_status shard_names(const char *index, const cJSON *weight_map, const char **name, size_t *n, dt_error *err) {
  *n = 0;
  for (const cJSON *item = weight_map->child; item; item = item->next) {
    if (!cJSON_IsString(item))
      return dt_fail(err, DT_EINPUT, "%s: weight_map of tensor %.100s: expected a file name", index, item->string);
    const char *file = item->valuestring;
    if (!*file || strlen(file) > NAME_MAX || strchr(file, '/') || strstr(file, "..") || has_control_character(file))
      return dt_fail(err, DT_EINPUT,
                     "%s: weight_map of tensor %.100s: file name \"%.100s\", expected a name in this folder", index,
                     item->string, has_control_character(file) ? "" : file);
    name[(*n)++] = file;
  }
  if (*n == 0) return dt_fail(err, DT_EINPUT, "%s: weight_map is empty", index);
  qsort(name, *n, sizeof *name, by_text);
  size_t distinct = 1;
  for (size_t i = 1; i < *n; i++)
    if (strcmp(name[i], name[distinct - 1])) name[distinct++] = name[i];
  *n = distinct;
  return DT_OK;
}

/* Checks that every tensor of the weight_map is in the file that it names. */
static dt_status check_index(const st *s, const char *index, const cJSON *weight_map, dt_error *err) {
  for (const cJSON *item = weight_map->child; item; item = item->next) {
    const st_tensor *t = st_find(s, item->string);
    const char *file = t ? strrchr(t->source->name, '/') + 1 : NULL;
    if (!file)
      return dt_fail(err, DT_EINPUT, "%s: tensor %.100s: listed in %s, which lacks it", index, item->string,
                     item->valuestring);
    if (strcmp(file, item->valuestring))
      return dt_fail(err, DT_EINPUT, "%s: tensor %.100s: listed in %s, found in %s", index, item->string,
                     item->valuestring, file);
  }
  return DT_OK;
}

static dt_status open_shards(const char *folder, const char *index, st **out, dt_error *err) {
  cJSON *json;
  dt_status status = json_read_object(index, &json, err);
  if (status != DT_OK) return status;
  const cJSON *weight_map = cJSON_GetObjectItemCaseSensitive(json, "weight_map");
  size_t n = cJSON_IsObject(weight_map) ? (size_t)cJSON_GetArraySize(weight_map) : 0;
  const char **name = malloc((n + 1) * sizeof *name);
  st *s = NULL;
  if (!cJSON_IsObject(weight_map))
    status = dt_fail(err, DT_EINPUT, "%s: expected weight_map, an object of file names", index);
  else if (!name)
    status = dt_fail_memory(err, "the list of shards", n * sizeof *name);
  else
    status = shard_names(index, weight_map, name, &n, err);
  if (status == DT_OK && !(s = new_st(n))) status = dt_fail_memory(err, "the list of shards", n * sizeof *s->file);
  for (size_t i = 0; i < n && status == DT_OK; i++) status = open_file(s, folder, name[i], err);
  if (status == DT_OK) status = check_names(s, err);
  if (status == DT_OK) status = check_index(s, index, weight_map, err);
  free(name);
  cJSON_Delete(json);
  if (status != DT_OK) {
    st_close(s);
    return status;
  }
  *out = s;
  return DT_OK;
}

static dt_status open_single(const char *folder, const char *name, st **out, dt_error *err) {
  st *s = new_st(1);
  if (!s) return dt_fail_memory(err, "a weight file", sizeof *s);
  dt_status status = open_file(s, folder, name, err);
  if (status == DT_OK) status = check_names(s, err);
  if (status != DT_OK) {
    st_close(s);
    return status;
  }
  *out = s;
  return DT_OK;
}

dt_status st_open_folder(const char *folder, st **out, dt_error *err) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s/" INDEX, folder) >= sizeof path)
    return dt_fail(err, DT_EINPUT, "%.100s..: the path of the folder is too long", folder);
  char single[PATH_MAX];
  snprintf(single, sizeof single, "%s/" SINGLE, folder);
  if (access(single, F_OK) == 0) return open_single(folder, SINGLE, out, err);
  if (access(path, F_OK) == 0) return open_shards(folder, path, out, err);
  snprintf(single, sizeof single, "%s/" MEDUSA, folder);
  if (access(single, F_OK) == 0) return open_single(folder, MEDUSA, out, err);
  static const char *const pickles[] = {"pytorch_model.bin", "medusa_lm_head.pt"};
  for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
    snprintf(single, sizeof single, "%s/%s", folder, pickles[i]);
    if (access(single, F_OK) == 0)
      return dt_fail(err, DT_EINPUT,
                     "%s is a pickle, which dtrun does not read: scripts/training/convert_head.py makes " SINGLE
                     " of a draft head's",
                     single);
  }
  return dt_fail(err, DT_EINPUT, "no " SINGLE " or " INDEX " in %s", folder);
}
