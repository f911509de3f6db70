/* The format: "GGUF", u32 version, u64 number of tensors, u64 number of keys, the keys with their values, the tensors'
 * infos, then the data, tensor by tensor; the data and each tensor begin at multiples of the alignment. See gguf.h. */
#include "model/gguf.h"
#include "model/gguf_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_READ (4u << 20)      /* the headers of most files are shorter */
#define MAX_HEADER (256u << 20)    /* 262,144 tokens with their merges take about 15 MB */
#define MAX_ENTRIES (1u << 20)     /* maximum number of keys, and of tensors */
#define MIN_KEY (8 + 4 + 1)        /* bytes of the shortest key with its value */
#define MIN_TENSOR (8 + 4 + 8 + 4) /* bytes of the shortest info of a tensor */
#define DEFAULT_ALIGNMENT 32

struct gguf {
  char *path;
  dt_source source;     /* named by the path */
  const uint8_t *bytes; /* the beginning of the file, with the whole header */
  uint8_t *owned;       /* NULL: the caller owns bytes */
  gguf_value *value;    /* sorted by key after opening */
  size_t n_values;
  gguf_tensor *tensor; /* sorted by name after opening; of all parts */
  size_t n_tensors;
  gguf **part; /* [n_parts] the other parts of a model in several files; `tensor` includes their tensors */
  int n_parts;
};

/* ---- the bytes of the header ------------------------------------------------------------------------------------- */

/* Reads the header's bytes. It keeps the first failure in status; later calls do nothing. */
typedef struct {
  const gguf *g;
  size_t have, at; /* bytes in memory; bytes that were read */
  bool more;       /* it failed because the header is longer than the bytes in memory */
  dt_error *err;
  dt_status status;
} reader;

/* The next n bytes, which are part of `what`; NULL: the file ends before. */
static const uint8_t *take(reader *r, uint64_t n, const char *what) {
  if (r->status != DT_OK) return NULL;
  if (n <= r->have - r->at) {
    r->at += (size_t)n;
    return r->g->bytes + r->at - n;
  }
  r->more = n <= r->g->source.size - r->at;
  if (r->more)
    r->status = dt_fail(r->err, DT_EINPUT, "%s: the header has more than %u bytes, the maximum (at %.100s)", r->g->path,
                        MAX_HEADER, what);
  else
    r->status =
        dt_fail(r->err, DT_EINPUT,
                "%s: the file has %" PRIu64 " bytes and ends in %.100s: it is truncated, or its header is wrong",
                r->g->path, r->g->source.size, what);
  return NULL;
}

static uint64_t little_endian(const uint8_t *p, size_t n) {
  uint64_t value = 0;
  while (n-- > 0) value = value << 8 | p[n];
  return value;
}

static uint64_t take_whole(reader *r, size_t n, const char *what) {
  const uint8_t *p = take(r, n, what);
  return p ? little_endian(p, n) : 0;
}

/* A name for messages and look-ups: not empty, no control characters. */
static const char *take_name(reader *r, uint64_t max, size_t *len, const char *what) {
  uint64_t n = take_whole(r, 8, what);
  if (r->status == DT_OK && (n < 1 || n > max))
    r->status =
        dt_fail(r->err, DT_EINPUT, "%s: %s of %" PRIu64 " bytes, expected 1 to %" PRIu64, r->g->path, what, n, max);
  const uint8_t *p = take(r, n, what);
  for (uint64_t i = 0; p && i < n; i++) {
    if (p[i] >= 0x20 && p[i] != 0x7f) continue;
    r->status = dt_fail(r->err, DT_EINPUT, "%s: %s contains a control character", r->g->path, what);
    p = NULL;
  }
  *len = p ? (size_t)n : 0;
  return (const char *)p;
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

/* Bytes of an element; 0: a string. */
static size_t size_of(gguf_type type) {
  static const uint8_t size[GGUF_TYPES] = {
      [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2,    [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
      [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_STRING] = 0, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};
  return size[type];
}

/* Records where the strings begin, for later look-ups. */
static void take_strings(reader *r, gguf_value *v, const char *what) {
  if (v->count > (r->g->source.size - r->at) / 8) {
    take(r, UINT64_MAX, what);
    return;
  }
  if (v->count > MAX_HEADER / 8) {
    r->status = dt_fail(r->err, DT_EINPUT, "%s: %" PRIu64 " strings in %.100s, expected at most %u", r->g->path,
                        v->count, what, MAX_HEADER / 8);
    return;
  }
  uint32_t *start = malloc((size_t)(v->count + 1) * sizeof *start);
  v->start = start;
  if (!start) {
    r->status = dt_fail_memory(r->err, "a GGUF file's strings", (v->count + 1) * sizeof *start);
    return;
  }
  for (uint64_t i = 0; i < v->count && r->status == DT_OK; i++) {
    uint64_t len = take_whole(r, 8, what);
    start[i] = (uint32_t)(r->g->bytes + r->at - v->data);
    take(r, len, what);
  }
}

static void take_value(reader *r, gguf_value *v) {
  v->key = take_name(r, UINT16_MAX, &v->key_len, "a key");
  char what[128];
  snprintf(what, sizeof what, "the key %.*s", v->key_len < 100 ? (int)v->key_len : 100, v->key ? v->key : "");
  uint64_t type = take_whole(r, 4, what);
  v->array = type == GGUF_ARRAY;
  v->count = 1;
  if (v->array) {
    type = take_whole(r, 4, what);
    v->count = take_whole(r, 8, what);
  }
  if (r->status == DT_OK && (type >= GGUF_TYPES || type == GGUF_ARRAY))
    r->status =
        dt_fail(r->err, DT_EINPUT, "%s: %s: %s of type %" PRIu64 ", expected a type from 0 to %d%s", r->g->path, what,
                v->array ? "an array" : "a value", type, GGUF_TYPES - 1, v->array ? " that is not an array" : "");
  if (r->status != DT_OK) return;
  v->type = (gguf_type)type;
  v->data = r->g->bytes + r->at;
  size_t size = size_of(v->type);
  if (size == 0)
    take_strings(r, v, what);
  else
    take(r, v->count <= UINT64_MAX / size ? v->count * size : UINT64_MAX, what);
  for (uint64_t i = 0; v->type == GGUF_BOOL && i < v->count && r->status == DT_OK; i++)
    if (v->data[i] > 1)
      r->status = dt_fail(r->err, DT_EINPUT, "%s: %s: a bool of %d, expected 0 or 1", r->g->path, what, v->data[i]);
}

static int compare_keys(const char *a, size_t a_len, const char *b, size_t b_len) {
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

static int by_key(const void *a, const void *b) {
  const gguf_value *x = a, *y = b;
  return compare_keys(x->key, x->key_len, y->key, y->key_len);
}

static dt_status sort_values(gguf *g, dt_error *err) {
  if (g->n_values) qsort(g->value, g->n_values, sizeof *g->value, by_key);
  for (size_t i = 1; i < g->n_values; i++)
    if (by_key(&g->value[i - 1], &g->value[i]) == 0)
      return dt_fail(err, DT_EINPUT, "%s: the key %.*s occurs twice", g->path,
                     g->value[i].key_len < 100 ? (int)g->value[i].key_len : 100, g->value[i].key);
  return DT_OK;
}

size_t gguf_count(const gguf *g) { return g->n_values; }

const gguf_value *gguf_at(const gguf *g, size_t i) { return &g->value[i]; }

const gguf_value *gguf_find(const gguf *g, const char *key) {
  gguf_value wanted = {.key = key, .key_len = strlen(key)};
  return g->n_values ? bsearch(&wanted, g->value, g->n_values, sizeof wanted, by_key) : NULL;
}

static const uint8_t *element(const gguf_value *v, uint64_t i) {
  return v && i < v->count ? v->data + i * size_of(v->type) : NULL;
}

bool gguf_integer(const gguf_value *v, uint64_t i, int64_t *out) {
  const uint8_t *p = element(v, i);
  if (!p) return false;
  uint64_t bits = little_endian(p, size_of(v->type));
  switch (v->type) {
  case GGUF_U8:
  case GGUF_U16:
  case GGUF_U32: *out = (int64_t)bits; return true;
  case GGUF_I8: *out = (int8_t)bits; return true;
  case GGUF_I16: *out = (int16_t)bits; return true;
  case GGUF_I32: *out = (int32_t)bits; return true;
  case GGUF_U64: *out = (int64_t)bits; return bits <= INT64_MAX;
  case GGUF_I64: *out = (int64_t)bits; return true;
  default: return false;
  }
}

bool gguf_number(const gguf_value *v, uint64_t i, double *out) {
  const uint8_t *p = element(v, i);
  if (p && v->type == GGUF_F32) {
    uint32_t bits = (uint32_t)little_endian(p, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    *out = value;
    return true;
  }
  if (p && v->type == GGUF_F64) {
    uint64_t bits = little_endian(p, 8);
    memcpy(out, &bits, sizeof *out);
    return true;
  }
  int64_t whole;
  if (!gguf_integer(v, i, &whole)) return false;
  *out = (double)whole;
  return true;
}

bool gguf_bool(const gguf_value *v, uint64_t i, bool *out) {
  const uint8_t *p = element(v, i);
  if (!p || v->type != GGUF_BOOL) return false;
  *out = *p == 1;
  return true;
}

const char *gguf_string(const gguf_value *v, uint64_t i, size_t *len) {
  if (!v || v->type != GGUF_STRING || i >= v->count) return NULL;
  const uint8_t *p = v->data + v->start[i];
  *len = (size_t)little_endian(p - 8, 8);
  return (const char *)p;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Names of types that exist but are not supported, for messages. */
static const char *foreign_type(uint32_t ggml) {
  static const struct {
    uint32_t ggml;
    const char *name;
  } foreign[] = {{9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
                 {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},    {28, "F64"},     {29, "IQ1_M"},
                 {34, "TQ1_0"}, {35, "TQ2_0"}, {40, "NVFP4"},   {41, "Q1_0"}};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    if (foreign[i].ggml == ggml) return foreign[i].name;
  return "unknown";
}

enum { GGML_I32 = 26, GGML_I64 = 27 };

static void check_type(reader *r, gguf_tensor *t, uint32_t ggml) {
  t->dtype = dt_type_of_ggml(ggml);
  t->type = t->dtype != DT_TYPES ? dt_type_of(t->dtype)->name
            : ggml == GGML_I32   ? "I32"
            : ggml == GGML_I64   ? "I64"
                                 : NULL;
  if (t->type) return;
  char known[256] = "";
  for (int i = 0; i < DT_TYPES; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", dt_type_of((dt_dtype)i)->name);
  }
  r->status = dt_fail(r->err, DT_EINPUT, "%s: tensor %s: type %u (%s) is not supported; supported: %s", r->g->path,
                      t->name, ggml, foreign_type(ggml), known);
}

static void measure(reader *r, gguf_tensor *t) {
  bool weights = t->dtype != DT_TYPES, overflow = false;
  uint64_t numbers = weights ? (uint64_t)dt_type_of(t->dtype)->numbers : 1;
  uint64_t bytes = weights ? (uint64_t)dt_type_of(t->dtype)->bytes : !strcmp(t->type, "I64") ? 8 : 4;
  t->size = t->ne[0] / numbers;
  overflow |= __builtin_mul_overflow(t->size, bytes, &t->size);
  for (int i = 1; i < 4; i++) overflow |= __builtin_mul_overflow(t->size, t->ne[i], &t->size);
  if (t->ne[0] % numbers)
    r->status =
        dt_fail(r->err, DT_EINPUT, "%s: tensor %s: rows of %" PRIu64 " numbers, %s needs a multiple of %" PRIu64,
                r->g->path, t->name, t->ne[0], t->type, numbers);
  else if (overflow)
    r->status = dt_fail(r->err, DT_EINPUT, "%s: tensor %s has more bytes than a file can hold", r->g->path, t->name);
}

static void take_tensor(reader *r, gguf_tensor *t) {
  size_t len;
  const char *name = take_name(r, sizeof t->name - 1, &len, "a tensor's name");
  if (name) memcpy(t->name, name, len);
  char what[96];
  snprintf(what, sizeof what, "the info of tensor %s", t->name);
  uint64_t rank = take_whole(r, 4, what);
  if (r->status == DT_OK && (rank < 1 || rank > 4))
    r->status =
        dt_fail(r->err, DT_EINPUT, "%s: tensor %s: %" PRIu64 " dimensions, expected 1 to 4", r->g->path, t->name, rank);
  if (r->status != DT_OK) return;
  t->rank = (int)rank;
  for (int i = 0; i < 4; i++) {
    t->ne[i] = i < t->rank ? take_whole(r, 8, what) : 1;
    if (r->status == DT_OK && t->ne[i] == 0)
      r->status =
          dt_fail(r->err, DT_EINPUT, "%s: tensor %s: dimension %d is 0, expected at least 1", r->g->path, t->name, i);
  }
  uint32_t type = (uint32_t)take_whole(r, 4, what);
  t->offset = take_whole(r, 8, what);
  if (r->status == DT_OK) check_type(r, t, type);
  if (r->status == DT_OK) measure(r, t);
}

static bool align_up(uint64_t n, uint64_t alignment, uint64_t *out) {
  if (n > UINT64_MAX - (alignment - 1)) return false;
  *out = (n + alignment - 1) & ~(alignment - 1);
  return true;
}

static dt_status read_alignment(const gguf *g, uint64_t *out, dt_error *err) {
  const gguf_value *v = gguf_find(g, "general.alignment");
  int64_t alignment = DEFAULT_ALIGNMENT;
  if (v && (v->array || v->type != GGUF_U32 || !gguf_integer(v, 0, &alignment) || alignment < 1 ||
            (alignment & (alignment - 1))))
    return dt_fail(err, DT_EINPUT, "%s: general.alignment: expected a power of two (u32)", g->path);
  *out = (uint64_t)alignment;
  return DT_OK;
}

/* Checks that the data are in the order of the infos, without holes. Offsets in the file count from its data, in a
 * gguf_tensor from the file's beginning. */
static dt_status place_tensors(gguf *g, uint64_t header, dt_error *err) {
  uint64_t alignment = 0, data, at = 0;
  dt_status status = read_alignment(g, &alignment, err);
  if (status != DT_OK) return status;
  data = header + (alignment - header % alignment) % alignment;
  for (size_t i = 0; i < g->n_tensors; i++) {
    gguf_tensor *t = &g->tensor[i];
    if (t->offset != at)
      return dt_fail(err, DT_EINPUT, "%s: tensor %s: data begins at %" PRIu64 ", expected %" PRIu64 " (%s)", g->path,
                     t->name, t->offset, at,
                     t->offset < at ? "it overlaps another tensor" : "there is a hole before it");
    uint64_t end;
    if (__builtin_add_overflow(at, t->size, &end) || data > g->source.size || end > g->source.size - data ||
        !align_up(end, alignment, &at))
      return dt_fail(err, DT_EINPUT,
                     "%s: tensor %s: %" PRIu64 " bytes from %" PRIu64 " on, but the file has only %" PRIu64
                     ": it is truncated, or its header is wrong",
                     g->path, t->name, t->size, data + t->offset, g->source.size);
    t->source = &g->source;
    t->offset += data;
  }
  return DT_OK;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const gguf_tensor *)a)->name, ((const gguf_tensor *)b)->name);
}

static dt_status sort_tensors(gguf *g, dt_error *err) {
  if (g->n_tensors) qsort(g->tensor, g->n_tensors, sizeof *g->tensor, by_name);
  for (size_t i = 1; i < g->n_tensors; i++)
    if (by_name(&g->tensor[i - 1], &g->tensor[i]) == 0)
      return dt_fail(err, DT_EINPUT, "%s: tensor %s: listed twice", g->path, g->tensor[i].name);
  return DT_OK;
}

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name) {
  gguf_tensor wanted;
  if (strlen(name) >= sizeof wanted.name || g->n_tensors == 0) return NULL;
  strcpy(wanted.name, name);
  return bsearch(&wanted, g->tensor, g->n_tensors, sizeof wanted, by_name);
}

const char *gguf_tensor_at(const gguf *g, const char *file, uint64_t offset) {
  for (size_t i = 0; i < g->n_tensors; i++)
    if (strcmp(g->tensor[i].source->name, file) == 0 && offset >= g->tensor[i].offset &&
        offset - g->tensor[i].offset < g->tensor[i].size)
      return g->tensor[i].name;
  return NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void check_version(reader *r) {
  const uint8_t *magic = take(r, 4, "its first bytes");
  if (magic && memcmp(magic, "GGUF", 4) != 0)
    r->status = dt_fail(r->err, DT_EINPUT, "%s: not a GGUF file: it does not begin with \"GGUF\"", r->g->path);
  uint32_t version = (uint32_t)take_whole(r, 4, "its version");
  if (r->status != DT_OK || version == 2 || version == 3) return;
  if (version != 0 && (version & 0xffff) == 0)
    r->status = dt_fail(r->err, DT_EINPUT, "%s: a big-endian GGUF file, expected a little-endian one", r->g->path);
  else
    r->status = dt_fail(r->err, DT_EINPUT, "%s: GGUF version %u, expected 2 or 3", r->g->path, version);
}

static uint64_t take_count(reader *r, const char *what) {
  uint64_t n = take_whole(r, 8, "its counts");
  if (r->status == DT_OK && n > MAX_ENTRIES)
    r->status = dt_fail(r->err, DT_EINPUT, "%s: %" PRIu64 " %s, expected at most %u", r->g->path, n, what, MAX_ENTRIES);
  return n;
}

static void forget_header(gguf *g) {
  for (size_t i = 0; i < g->n_values; i++) free((void *)g->value[i].start);
  free(g->value);
  free(g->tensor);
  g->value = NULL, g->tensor = NULL;
  g->n_values = g->n_tensors = 0;
}

/* Reads the header from the `have` bytes in memory. *more: it needs more bytes. */
static dt_status read_header(gguf *g, size_t have, bool *more, dt_error *err) {
  reader r = {.g = g, .have = have, .err = err, .status = DT_OK};
  check_version(&r);
  uint64_t tensors = take_count(&r, "tensors"), values = take_count(&r, "keys");
  if (r.status == DT_OK && values * MIN_KEY + tensors * MIN_TENSOR > g->source.size) take(&r, UINT64_MAX, "its keys");
  if (r.status == DT_OK) {
    g->value = calloc((size_t)values + 1, sizeof *g->value);
    g->tensor = calloc((size_t)tensors + 1, sizeof *g->tensor);
    if (!g->value || !g->tensor)
      r.status = dt_fail_memory(err, "a GGUF file's header",
                                (values + 1) * sizeof *g->value + (tensors + 1) * sizeof *g->tensor);
  }
  while (r.status == DT_OK && g->n_values < values) take_value(&r, &g->value[g->n_values++]);
  while (r.status == DT_OK && g->n_tensors < tensors) take_tensor(&r, &g->tensor[g->n_tensors++]);
  *more = r.more;
  if (r.status == DT_OK) r.status = sort_values(g, err);
  if (r.status == DT_OK) r.status = place_tensors(g, r.at, err);
  if (r.status == DT_OK) r.status = sort_tensors(g, err);
  return r.status;
}

/* Reads the beginning of a file, and more of it as long as the header goes on. */
static dt_status read_first_part(gguf *g, dt_error *err) {
  uint64_t most = g->source.size < MAX_HEADER ? g->source.size : MAX_HEADER;
  size_t have = most < FIRST_READ ? (size_t)most : FIRST_READ;
  for (;;) {
    free(g->owned);
    g->bytes = g->owned = malloc(have + !have);
    if (!g->owned) return dt_fail_memory(err, "a GGUF file's header", have);
    dt_status status = source_read(&g->source, 0, g->owned, have, err);
    bool more = false;
    if (status == DT_OK) status = read_header(g, have, &more, err);
    if (status == DT_OK || !more || have == most) return status;
    forget_header(g);
    have = most / 4 < have ? (size_t)most : 4 * have;
  }
}

/* What a file says about its place in a model of several files. */
typedef struct {
  int64_t number, count; /* number: from 1; count 1: the file has the whole model */
  int64_t tensors;       /* in all parts; -1: not given */
} split;

static split split_of(const gguf *g) {
  split s = {0, 1, -1};
  gguf_integer(gguf_find(g, "split.count"), 0, &s.count);
  gguf_integer(gguf_find(g, "split.no"), 0, &s.number);
  gguf_integer(gguf_find(g, "split.tensors.count"), 0, &s.tensors);
  s.number = s.number < INT64_MAX ? s.number + 1 : s.number;
  return s;
}

static gguf *new_gguf(const char *path) {
  gguf *g = calloc(1, sizeof *g);
  if (g) g->path = strdup(path);
  if (g && g->path) {
    g->source = source_of_memory(g->path, NULL, 0);
    return g;
  }
  free(g);
  return NULL;
}

dt_status gguf_open_bytes(const char *name, const void *bytes, size_t size, gguf **out, dt_error *err) {
  gguf *g = new_gguf(name);
  if (!g) return dt_fail_memory(err, "a GGUF file", sizeof *g);
  g->bytes = bytes;
  g->source = source_of_memory(g->path, bytes, size);
  bool more;
  dt_status status = read_header(g, size < MAX_HEADER ? size : MAX_HEADER, &more, err);
  if (status == DT_OK && split_of(g).count > 1)
    status = dt_fail(err, DT_EINPUT, "%s: one of %" PRId64 " parts of a model, expected a model in one file", g->path,
                     split_of(g).count);
  if (status == DT_OK)
    *out = g;
  else
    gguf_close(g);
  return status;
}

static dt_status open_one(const char *path, gguf **out, dt_error *err) {
  gguf *g = new_gguf(path);
  if (!g) return dt_fail_memory(err, "a GGUF file", sizeof *g);
  dt_status status = source_open(g->path, &g->source, err);
  if (status == DT_OK) status = read_first_part(g, err);
  if (status == DT_OK)
    *out = g;
  else
    gguf_close(g);
  return status;
}

/* ---- models in several files ------------------------------------------------------------------------------------- */

/* Opens part `number` of `count`, of which `named` is one. */
static dt_status open_part(const gguf *named, int number, int count, gguf **out, dt_error *err) {
  char path[4096];
  dt_error why;
  if (!gguf_part_path(named->path, number, path, sizeof path))
    return dt_fail(err, DT_EINPUT, "%.100s..: the path is too long", named->path);
  dt_status status = open_one(path, out, &why);
  if (status != DT_OK) return dt_fail(err, status, "%s (part %d of %d of a model)", why.message, number, count);
  split s = split_of(*out);
  if (s.number == number && s.count == count) return DT_OK;
  gguf_close(*out);
  return dt_fail(err, DT_EINPUT, "%s: it is part %" PRId64 " of %" PRId64 ", expected part %d of %d of a model", path,
                 s.number, s.count, number, count);
}

/* Takes over a part; only the tensors of its header matter. */
static dt_status add_part(gguf *g, gguf *part, dt_error *err) {
  gguf_tensor *grown = realloc(g->tensor, (g->n_tensors + part->n_tensors + 1) * sizeof *grown);
  if (grown) g->tensor = grown;
  gguf **parts = realloc(g->part, ((size_t)g->n_parts + 1) * sizeof *parts);
  if (parts) g->part = parts;
  if (!grown || !parts) {
    gguf_close(part);
    return dt_fail_memory(err, "a GGUF file's tensors", (g->n_tensors + part->n_tensors) * sizeof *grown);
  }
  memcpy(g->tensor + g->n_tensors, part->tensor, part->n_tensors * sizeof *grown);
  g->n_tensors += part->n_tensors;
  g->part[g->n_parts++] = part;
  forget_header(part);
  free(part->owned);
  part->owned = NULL, part->bytes = NULL;
  return DT_OK;
}

/* Opens all parts of the model to which a file belongs, and closes that file. */
static dt_status open_all(gguf *named, gguf **out, dt_error *err) {
  split s = split_of(named);
  int number = 0, count = 0;
  gguf *all = NULL, *part;
  dt_status status = DT_OK;
  if (!gguf_part(named->path, &number, &count) || number != s.number || count != s.count)
    status = dt_fail(err, DT_EINPUT,
                     "%s: it is part %" PRId64 " of %" PRId64 " of a model, expected a name that ends in -%05" PRId64
                     "-of-%05" PRId64 ".gguf, and the other parts next to it",
                     named->path, s.number, s.count, s.number, s.count);
  if (status == DT_OK) status = open_part(named, 1, count, &all, err);
  for (int i = 2; i <= count && status == DT_OK; i++) {
    status = open_part(named, i, count, &part, err);
    if (status == DT_OK) status = add_part(all, part, err);
  }
  if (status == DT_OK) status = sort_tensors(all, err);
  if (status == DT_OK && s.tensors >= 0 && (uint64_t)s.tensors != all->n_tensors)
    status = dt_fail(err, DT_EINPUT,
                     "%s: the %d parts of this model have %zu tensors, expected %" PRId64
                     " (split.tensors.count): a part belongs to another model",
                     named->path, count, all->n_tensors, s.tensors);
  gguf_close(named);
  if (status == DT_OK)
    *out = all;
  else
    gguf_close(all);
  return status;
}

dt_status gguf_open(const char *path, gguf **out, dt_error *err) {
  gguf *g;
  dt_status status = open_one(path, &g, err);
  if (status != DT_OK) return status;
  if (split_of(g).count > 1) return open_all(g, out, err);
  *out = g;
  return DT_OK;
}

void gguf_close(gguf *g) {
  if (!g) return;
  forget_header(g);
  for (int i = 0; i < g->n_parts; i++) gguf_close(g->part[i]);
  free(g->part);
  source_close(&g->source);
  free(g->owned);
  free(g->path);
  free(g);
}

const char *gguf_path(const gguf *g) { return g->path; }
