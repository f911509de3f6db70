/* GGUF files made by hand: what is read from them, and every fault that is refused. */
#include "gguf_file.h"
#include "temp_files.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

static void bytes_fail(gguf_file f, const char *part) {
  gguf *g = NULL;
  fails(gguf_open_bytes("m.gguf", f.bytes, f.size, &g, &err), DT_EINPUT, part);
  assert_null(g);
  free(f.bytes);
}

static gguf *bytes_open(gguf_file f) {
  gguf *g = NULL;
  ok(gguf_open_bytes("m.gguf", f.bytes, f.size, &g, &err));
  return g;
}

static gguf_file one_of_everything(uint32_t version) {
  gguf_file f = {0};
  file_head(&f, version, 2, 15);
  file_key(&f, "u8", GGUF_U8), file_put(&f, "\xff", 1);
  file_key(&f, "i8", GGUF_I8), file_put(&f, "\xff", 1);
  file_key(&f, "u16", GGUF_U16), file_put(&f, "\xfe\xff", 2);
  file_key(&f, "i16", GGUF_I16), file_put(&f, "\xfe\xff", 2);
  file_key_u32(&f, "u32", 0xfffffffd);
  file_key(&f, "i32", GGUF_I32), file_u32(&f, 0xfffffffd);
  file_key_f32(&f, "f32", 0.1f);
  file_key(&f, "yes", GGUF_BOOL), file_put(&f, "\1", 1);
  file_key(&f, "no", GGUF_BOOL), file_put(&f, "\0", 1);
  file_key_string(&f, "text", "ein Wort");
  file_key(&f, "u64", GGUF_U64), file_u64(&f, 1ull << 63);
  file_key(&f, "i64", GGUF_I64), file_u64(&f, 1ull << 63);
  file_key(&f, "f64", GGUF_F64), file_put(&f, &(double){0.1}, 8);
  file_key_strings(&f, "texts", (const char *const[]){"a", "", "c\n"}, 3);
  file_key(&f, "numbers", GGUF_ARRAY), file_u32(&f, GGUF_I16), file_u64(&f, 2), file_put(&f, "\1\0\xff\xff", 4);
  file_tensor(&f, "w", 8, 64, 3, 0);
  file_tensor(&f, "b", 0, 3, 0, 224); /* 3 rows of 68 bytes, rounded up to 32 */
  file_data(&f, 32, 236);
  for (int i = 0; i < 12; i++) f.bytes[f.size - 12 + i] = (unsigned char)i;
  return f;
}

static void check_values(const gguf *g) {
  static const struct {
    const char *key;
    bool whole;
    int64_t integer;
    double number;
  } want[] = {
      {"u8", true, 255, 255},
      {"i8", true, -1, -1},
      {"u16", true, 65534, 65534},
      {"i16", true, -2, -2},
      {"u32", true, 4294967293, 4294967293.0},
      {"i32", true, -3, -3},
      {"f32", false, 0, (double)0.1f},
      {"i64", true, INT64_MIN, -0x1p63},
      {"f64", false, 0, 0.1},
  };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    const gguf_value *v = gguf_find(g, want[i].key);
    int64_t integer = 0;
    double number = 0;
    assert_non_null(v);
    assert_false(v->array);
    assert_int_equal(gguf_integer(v, 0, &integer), want[i].whole);
    assert_true(integer == want[i].integer);
    assert_true(gguf_number(v, 0, &number) && number == want[i].number);
    assert_false(gguf_number(v, 1, &number));
    assert_false(gguf_bool(v, 0, &(bool){0}));
    assert_null(gguf_string(v, 0, &(size_t){0}));
  }
  bool truth = false;
  assert_true(gguf_bool(gguf_find(g, "yes"), 0, &truth) && truth);
  assert_true(gguf_bool(gguf_find(g, "no"), 0, &truth) && !truth);
  assert_false(gguf_integer(gguf_find(g, "yes"), 0, &(int64_t){0}));
  assert_false(gguf_integer(gguf_find(g, "u64"), 0, &(int64_t){0})); /* 2^63 does not fit */
  assert_false(gguf_integer(gguf_find(g, "text"), 0, &(int64_t){0}));
}

static void check_strings(const gguf *g) {
  size_t len = 0;
  assert_memory_equal(gguf_string(gguf_find(g, "text"), 0, &len), "ein Wort", 8);
  assert_int_equal(len, 8);
  const gguf_value *texts = gguf_find(g, "texts");
  assert_true(texts->array && texts->type == GGUF_STRING && texts->count == 3);
  assert_true(*gguf_string(texts, 0, &len) == 'a' && len == 1);
  assert_non_null(gguf_string(texts, 1, &len));
  assert_int_equal(len, 0);
  assert_memory_equal(gguf_string(texts, 2, &len), "c\n", 2);
  assert_null(gguf_string(texts, 3, &len));
  int64_t integer = 0;
  assert_true(gguf_integer(gguf_find(g, "numbers"), 1, &integer) && integer == -1);
  assert_false(gguf_integer(gguf_find(g, "numbers"), 2, &integer));
  assert_null(gguf_find(g, "absent"));
  assert_false(gguf_integer(NULL, 0, &integer) || gguf_number(NULL, 0, &(double){0}) || gguf_bool(NULL, 0, &(bool){0}));
  assert_null(gguf_string(NULL, 0, &len));
}

static void check_order(const gguf *g) {
  assert_int_equal(gguf_count(g), 15);
  for (size_t i = 1; i < gguf_count(g); i++) {
    const gguf_value *a = gguf_at(g, i - 1), *b = gguf_at(g, i);
    int order = memcmp(a->key, b->key, a->key_len < b->key_len ? a->key_len : b->key_len);
    assert_true(order < 0 || (order == 0 && a->key_len < b->key_len));
  }
}

static void check_tensors(const gguf *g, size_t size) {
  const gguf_tensor *w = gguf_find_tensor(g, "w"), *b = gguf_find_tensor(g, "b");
  assert_non_null(w);
  assert_true(w->dtype == DT_Q8_0 && w->rank == 2 && w->ne[0] == 64 && w->ne[1] == 3 && w->ne[2] == 1 &&
              w->size == 204);
  assert_non_null(b);
  assert_true(b->dtype == DT_F32 && b->rank == 1 && b->ne[0] == 3 && b->size == 12);
  assert_int_equal(w->offset % 32, 0);
  assert_true(b->offset == w->offset + 224 && b->offset + 12 == size);
  assert_null(gguf_find_tensor(g, "c"));
  assert_null(gguf_find_tensor(g, "a name of more than sixty-three bytes, which no tensor of a file has"));
  unsigned char data[12];
  ok(source_read(b->source, b->offset, data, 12, &err));
  for (int i = 0; i < 12; i++) assert_int_equal(data[i], i);
  fails(source_read(b->source, b->offset, data, 13, &err), DT_EINPUT, "m.gguf: ");
}

static void every_type_of_value_is_read_from_both_versions(void **state) {
  (void)state;
  for (uint32_t version = 2; version <= 3; version++) {
    gguf_file f = one_of_everything(version);
    gguf *g = bytes_open(f);
    check_values(g), check_strings(g), check_order(g), check_tensors(g, f.size);
    gguf_close(g);
    free(f.bytes);
  }
}

static void a_file_is_read_where_it_lies(void **state) {
  (void)state;
  char *folder = temp_folder(), path[256];
  gguf_file f = one_of_everything(3);
  temp_write(folder, "m.gguf", f.bytes, f.size);
  snprintf(path, sizeof path, "%s/m.gguf", folder);
  gguf *g;
  ok(gguf_open(path, &g, &err));
  check_values(g), check_strings(g), check_tensors(g, f.size);
  assert_string_equal(gguf_path(g), path);
  assert_int_equal(truncate(path, (off_t)f.size - 5), 0);
  const gguf_tensor *b = gguf_find_tensor(g, "b");
  fails(source_read(b->source, b->offset, (char[12]){0}, 12, &err), DT_EINPUT, "it was truncated while it was read");
  gguf_close(g);
  free(f.bytes);
  temp_remove(folder);
}

static void a_header_longer_than_what_is_read_at_first_is_read_whole(void **state) {
  (void)state;
  char *folder = temp_folder(), path[256], *text = malloc(1 << 20);
  memset(text, 'x', (1 << 20) - 1), text[(1 << 20) - 1] = 0;
  gguf_file f = {0};
  file_head(&f, 3, 1, 6);
  for (int i = 0; i < 5; i++) file_key_string(&f, (const char *[]){"a", "b", "c", "d", "e"}[i], text);
  file_key_u32(&f, "last", 7);
  file_tensor(&f, "w", 1, 3, 0, 0);
  file_data(&f, 32, 6);
  temp_write(folder, "m.gguf", f.bytes, f.size);
  snprintf(path, sizeof path, "%s/m.gguf", folder);
  gguf *g;
  ok(gguf_open(path, &g, &err));
  int64_t last = 0;
  size_t len = 0;
  assert_true(gguf_integer(gguf_find(g, "last"), 0, &last) && last == 7);
  assert_memory_equal(gguf_string(gguf_find(g, "e"), 0, &len), text, (1 << 20) - 1);
  assert_int_equal(len, (1 << 20) - 1);
  assert_int_equal(gguf_find_tensor(g, "w")->offset + 6, f.size);
  gguf_close(g);
  free(f.bytes), free(text);
  temp_remove(folder);
}

static void a_header_without_end_is_refused(void **state) {
  (void)state;
  char *folder = temp_folder(), path[256];
  gguf_file f = {0};
  file_head(&f, 3, 0, 1);
  file_key(&f, "text", GGUF_STRING);
  file_u64(&f, 300u << 20);
  temp_write(folder, "m.gguf", f.bytes, f.size);
  snprintf(path, sizeof path, "%s/m.gguf", folder);
  assert_int_equal(truncate(path, 400 << 20), 0); /* a hole, which takes no space on disk */
  gguf *g = NULL;
  fails(gguf_open(path, &g, &err), DT_EINPUT,
        "the header has more than 268435456 bytes, the maximum (at the key text)");
  free(f.bytes);
  temp_remove(folder);
}

static void what_is_no_file_is_refused(void **state) {
  (void)state;
  char *folder = temp_folder(), path[256];
  gguf *g = NULL;
  snprintf(path, sizeof path, "%s/m.gguf", folder);
  fails(gguf_open(path, &g, &err), DT_EINPUT, "m.gguf: no such file");
  assert_int_equal(mkfifo(path, 0600), 0);
  fails(gguf_open(path, &g, &err), DT_EINPUT, "m.gguf: not a regular file");
  fails(gguf_open(folder, &g, &err), DT_EINPUT, "not a regular file");
  temp_remove(folder);
}

static void every_truncation_of_a_good_file_is_refused(void **state) {
  (void)state;
  gguf_file f = one_of_everything(3);
  for (size_t n = 0; n < f.size; n++) {
    gguf_file cut = {0};
    file_put(&cut, f.bytes, n);
    bytes_fail(cut, "m.gguf: ");
  }
  gguf_file cut = {0};
  file_put(&cut, f.bytes, f.size - 1);
  bytes_fail(cut, "tensor b: 12 bytes from ");
  cut = (gguf_file){0};
  file_put(&cut, f.bytes, 30);
  bytes_fail(cut, "m.gguf: the file has 30 bytes and ends in ");
  free(f.bytes);
}

static void other_formats_and_versions_are_told_apart(void **state) {
  (void)state;
  gguf_file f = {0};
  file_put(&f, "PK\3\4________________________", 28);
  bytes_fail(f, "m.gguf: not a GGUF file");
  static const struct {
    uint32_t version;
    const char *message;
  } cases[] = {{0x03000000, "a big-endian GGUF file, expected a little-endian one"},
               {1, "GGUF version 1, expected 2 or 3"},
               {4, "GGUF version 4, expected 2 or 3"},
               {0, "GGUF version 0, expected 2 or 3"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    f = (gguf_file){0};
    file_head(&f, cases[i].version, 0, 0);
    bytes_fail(f, cases[i].message);
  }
}

static void counts_that_lie_are_refused(void **state) {
  (void)state;
  gguf_file f = {0};
  file_head(&f, 3, 0, UINT64_MAX), bytes_fail(f, "18446744073709551615 keys, expected at most 1048576");
  f = (gguf_file){0}, file_head(&f, 3, 1 << 21, 0), bytes_fail(f, "2097152 tensors, expected");
  f = (gguf_file){0}, file_head(&f, 3, 1 << 20, 1 << 20), bytes_fail(f, "the file has 24 bytes and ends in its keys");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1);
  file_key(&f, "k", GGUF_ARRAY), file_u32(&f, GGUF_STRING), file_u64(&f, UINT64_MAX);
  bytes_fail(f, "ends in the key k");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1);
  file_key(&f, "k", GGUF_ARRAY), file_u32(&f, GGUF_U64), file_u64(&f, 1ull << 61); /* 2^64 bytes */
  bytes_fail(f, "ends in the key k");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1);
  file_key(&f, "k", GGUF_STRING), file_u64(&f, UINT64_MAX), file_put(&f, "text", 4);
  bytes_fail(f, "ends in the key k");
}

static void bad_metadata_is_refused(void **state) {
  (void)state;
  gguf_file f = {0};
  file_head(&f, 3, 0, 2), file_key_u32(&f, "twice", 1), file_key_string(&f, "twice", "x");
  bytes_fail(f, "m.gguf: the key twice occurs twice");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1), file_key(&f, "k", 13), file_u64(&f, 0), file_u64(&f, 0);
  bytes_fail(f, "the key k: a value of type 13, expected a type from 0 to 12");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1), file_key(&f, "k", GGUF_ARRAY), file_u32(&f, GGUF_ARRAY), file_u64(&f, 0);
  bytes_fail(f, "the key k: an array of type 9, expected a type from 0 to 12 that is not an array");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1), file_key(&f, "k", GGUF_BOOL), file_put(&f, "\2", 1);
  bytes_fail(f, "the key k: a bool of 2, expected 0 or 1");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1), file_key_u32(&f, "", 1),
  bytes_fail(f, "a key of 0 bytes, expected 1 to 65535");
  f = (gguf_file){0}, file_head(&f, 3, 0, 1), file_key_u32(&f, "a\nb", 1),
  bytes_fail(f, "a key contains a control character");
  static const uint32_t alignments[] = {0, 3, 48};
  for (int i = 0; i < 3; i++) {
    f = (gguf_file){0}, file_head(&f, 3, 0, 1), file_key_u32(&f, "general.alignment", alignments[i]);
    bytes_fail(f, "general.alignment: expected a power of two (u32)");
  }
}

/* Checks a file with one tensor, which is wrong. */
static void tensor_fails(const char *name, uint32_t ggml, uint64_t ne0, uint64_t ne1, uint64_t offset,
                         const char *part) {
  gguf_file f = {0};
  file_head(&f, 3, 1, 0);
  file_tensor(&f, name, ggml, ne0, ne1, offset);
  file_data(&f, 32, 64);
  bytes_fail(f, part);
}

static void bad_tensors_are_refused(void **state) {
  (void)state;
  tensor_fails("w", 40, 32, 0, 0, "tensor w: type 40 (NVFP4) is not supported; supported: F32, F16, BF16, Q4_0, ");
  tensor_fails("w", 16, 256, 0, 0, "type 16 (IQ2_XXS) is not supported");
  tensor_fails("w", 4, 32, 0, 0, "type 4 (unknown) is not supported");
  tensor_fails("w", 0, 0, 0, 0, "tensor w: dimension 0 is 0, expected at least 1");
  tensor_fails("w", 8, 48, 1, 0, "tensor w: rows of 48 numbers, Q8_0 needs a multiple of 32");
  tensor_fails("w", 12, 128, 1, 0, "tensor w: rows of 128 numbers, Q4_K needs a multiple of 256");
  tensor_fails("w", 0, 1ull << 62, 0, 0, "tensor w has more bytes than a file can hold");
  tensor_fails("w", 0, 1ull << 40, 1ull << 40, 0, "tensor w has more bytes than a file can hold");
  tensor_fails("w", 0, 17, 0, 0, "tensor w: 68 bytes from 64 on, but the file has only 128: it is truncated");
  tensor_fails("w", 0, 1ull << 61, 0, 0, "bytes from 64 on, but the file has only 128");
  tensor_fails("w", 0, 4, 0, 32, "tensor w: data begins at 32, expected 0 (there is a hole before it)");
  tensor_fails("", 0, 4, 0, 0, "a tensor's name of 0 bytes, expected 1 to 63");
  tensor_fails("a name of sixty-four bytes, one more than a tensor's name may be", 0, 4, 0, 0,
               "a tensor's name of 64 bytes, expected 1 to 63");
  tensor_fails("\x1b[2J", 0, 4, 0, 0, "a tensor's name contains a control character");

  gguf_file f = {0};
  file_head(&f, 3, 1, 0), file_string(&f, "w"), file_u32(&f, 5);
  for (int i = 0; i < 8; i++) file_u64(&f, 1);
  bytes_fail(f, "tensor w: 5 dimensions, expected 1 to 4");
}

static void tensors_lie_in_order_without_overlaps_and_holes(void **state) {
  (void)state;
  static const struct {
    const char *second;
    uint64_t offset;
    const char *message;
  } cases[] = {{"b", 0, "tensor b: data begins at 0, expected 64 (it overlaps another tensor)"},
               {"b", 40, "tensor b: data begins at 40, expected 64 (it overlaps another tensor)"},
               {"b", 96, "tensor b: data begins at 96, expected 64 (there is a hole before it)"},
               {"a", 64, "m.gguf: tensor a: listed twice"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gguf_file f = {0};
    file_head(&f, 3, 2, 0);
    file_tensor(&f, "a", 0, 10, 0, 0);
    file_tensor(&f, cases[i].second, 0, 8, 0, cases[i].offset);
    file_data(&f, 32, 128);
    bytes_fail(f, cases[i].message);
  }
}

static void an_alignment_of_its_own_is_followed(void **state) {
  (void)state;
  for (size_t n = 0; n < 8; n++) { /* one of these headers ends exactly where the data begin, without padding */
    gguf_file f = {0};
    file_head(&f, 3, 2, 2);
    file_key_u32(&f, "general.alignment", 8);
    file_key_string(&f, "general.name", &"1234567"[n]);
    file_tensor(&f, "a", 1, 5, 0, 0);
    file_tensor(&f, "b", 1, 2, 0, 16);
    file_data(&f, 8, 20);
    gguf *g = bytes_open(f);
    assert_int_equal(gguf_find_tensor(g, "b")->offset + 4, f.size);
    gguf_close(g);
    free(f.bytes);
  }
}

static void bytes_are_no_part_of_a_model(void **state) {
  (void)state;
  for (uint16_t parts = 1; parts <= 2; parts++) {
    gguf_file f = {0};
    file_head(&f, 3, 0, 1);
    file_key(&f, "split.count", GGUF_U16), file_put(&f, &parts, 2);
    if (parts == 1) {
      gguf_close(bytes_open(f));
      free(f.bytes);
    } else
      bytes_fail(f, "m.gguf: one of 2 parts of a model, expected a model in one file");
  }
}

static char folder[64];

/* Writes part `number` of `count` under a name, with one tensor of 8 numbers. `tensors`: the number in all parts. */
static void write_part(const char *name, uint16_t number, uint16_t count, int32_t tensors, const char *tensor) {
  gguf_file f = {0};
  char path[128];
  const uint16_t no = (uint16_t)(number - 1);
  file_head(&f, 3, 1, number == 1 ? 4 : 3);
  if (number == 1) file_key_string(&f, "general.architecture", "llama");
  file_key(&f, "split.no", GGUF_U16), file_put(&f, &no, 2);
  file_key(&f, "split.count", GGUF_U16), file_put(&f, &count, 2);
  file_key(&f, "split.tensors.count", GGUF_I32), file_put(&f, &tensors, 4);
  file_tensor(&f, tensor, 0, 8, 0, 0);
  file_data(&f, 32, 8 * sizeof(float));
  f.bytes[f.size - 1] = (unsigned char)number; /* the last byte of its last number */
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(f.bytes, 1, f.size, file), f.size);
  fclose(file);
  free(f.bytes);
}

static void write_three(void) {
  write_part("m-00001-of-00003.gguf", 1, 3, 3, "one");
  write_part("m-00002-of-00003.gguf", 2, 3, 3, "two");
  write_part("m-00003-of-00003.gguf", 3, 3, 3, "three");
}

static void parts_fail(const char *name, const char *message) {
  char path[128];
  gguf *g = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  fails(gguf_open(path, &g, &err), DT_EINPUT, message);
  assert_null(g);
}

static void a_model_in_parts_is_opened_by_any_of_them(void **state) {
  (void)state;
  static const char *const names[] = {"one", "two", "three"};
  char *made = temp_folder();
  snprintf(folder, sizeof folder, "%s", made);
  write_three();
  for (int named = 1; named <= 3; named++) {
    char path[128];
    gguf *g;
    size_t len;
    snprintf(path, sizeof path, "%s/m-%05d-of-00003.gguf", folder, named);
    ok(gguf_open(path, &g, &err));
    assert_memory_equal(gguf_string(gguf_find(g, "general.architecture"), 0, &len), "llama", 5);
    for (int i = 0; i < 3; i++) {
      const gguf_tensor *t = gguf_find_tensor(g, names[i]);
      unsigned char last;
      assert_non_null(t);
      ok(source_read(t->source, t->offset + t->size - 1, &last, 1, &err));
      assert_int_equal(last, i + 1);
      assert_string_equal(gguf_tensor_at(g, t->source->name, t->offset), names[i]);
    }
    gguf_close(g);
  }
  char path[128];
  snprintf(path, sizeof path, "%s/m-00002-of-00003.gguf", folder);
  unlink(path);
  parts_fail("m-00001-of-00003.gguf", "m-00002-of-00003.gguf: no such file (part 2 of 3 of a model)");
  parts_fail("m-00003-of-00003.gguf", "m-00002-of-00003.gguf: no such file (part 2 of 3 of a model)");
  write_part("m-00002-of-00003.gguf", 1, 3, 3, "two"); /* wrong number, */
  parts_fail("m-00001-of-00003.gguf", "m-00002-of-00003.gguf: it is part 1 of 3, expected part 2 of 3 of a model");
  parts_fail("m-00002-of-00003.gguf",
             "m-00002-of-00003.gguf: it is part 1 of 3 of a model, expected a name that ends in");
  write_part("m-00002-of-00003.gguf", 2, 2, 3, "two"); /* wrong count, */
  parts_fail("m-00001-of-00003.gguf", "m-00002-of-00003.gguf: it is part 2 of 2, expected part 2 of 3 of a model");
  write_part("m-00002-of-00003.gguf", 2, 3, 3, "one"); /* or a tensor that another part has */
  parts_fail("m-00001-of-00003.gguf", "tensor one: listed twice");
  write_part("m-00002-of-00003.gguf", 2, 3, 3, "two");
  write_part("m-00001-of-00003.gguf", 1, 3, 4, "one");
  parts_fail("m-00001-of-00003.gguf", "the 3 parts of this model have 3 tensors, expected 4 (split.tensors.count)");
  write_part("other.gguf", 2, 3, 3, "two");
  parts_fail("other.gguf",
             "other.gguf: it is part 2 of 3 of a model, expected a name that ends in -00002-of-00003.gguf");
  temp_remove(made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_of_value_is_read_from_both_versions),
      cmocka_unit_test(a_file_is_read_where_it_lies),
      cmocka_unit_test(a_header_longer_than_what_is_read_at_first_is_read_whole),
      cmocka_unit_test(a_header_without_end_is_refused),
      cmocka_unit_test(what_is_no_file_is_refused),
      cmocka_unit_test(every_truncation_of_a_good_file_is_refused),
      cmocka_unit_test(other_formats_and_versions_are_told_apart),
      cmocka_unit_test(counts_that_lie_are_refused),
      cmocka_unit_test(bad_metadata_is_refused),
      cmocka_unit_test(bad_tensors_are_refused),
      cmocka_unit_test(tensors_lie_in_order_without_overlaps_and_holes),
      cmocka_unit_test(an_alignment_of_its_own_is_followed),
      cmocka_unit_test(bytes_are_no_part_of_a_model),
      cmocka_unit_test(a_model_in_parts_is_opened_by_any_of_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
