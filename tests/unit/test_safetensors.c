#include "model/safetensors.h"
#include "temp_files.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ONE "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

/* A header and `data` zero bytes; malloc'd to the exact size, so that a sanitizer notices a read past the end. */
static unsigned char *build(const char *header, size_t data, size_t *size) {
  size_t length = strlen(header);
  *size = 8 + length + data;
  unsigned char *bytes = calloc(1, *size);
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
  memcpy(bytes + 8, header, length);
  return bytes;
}

static void write_weights(const char *folder, const char *name, const char *header, size_t data) {
  size_t size;
  unsigned char *bytes = build(header, data, &size);
  temp_write(folder, name, bytes, size);
  free(bytes);
}

static void check_message(dt_status status, const dt_error *err, const char *part) {
  if (!strstr(err->message, part)) print_error("message: %s\nlacks:   %s\n", err->message, part);
  assert_int_equal(status, DT_EINPUT);
  assert_int_equal(err->status, DT_EINPUT);
  assert_non_null(strstr(err->message, part));
  assert_null(strchr(err->message, '\n'));
}

static void bytes_fail(const void *bytes, size_t size, const char *part) {
  st *s = NULL;
  dt_error err = {0};
  dt_status status = st_open_bytes("w.safetensors", bytes, size, &s, &err);
  check_message(status, &err, part);
  assert_null(s);
}

static void header_fails(const char *header, size_t data, const char *part) {
  size_t size;
  unsigned char *bytes = build(header, data, &size);
  bytes_fail(bytes, size, part);
  free(bytes);
}

static st *header_opens(const char *header, size_t data, unsigned char **bytes) {
  size_t size;
  st *s = NULL;
  dt_error err = {0};
  *bytes = build(header, data, &size);
  dt_status status = st_open_bytes("w.safetensors", *bytes, size, &s, &err);
  if (status != DT_OK) print_error("%s\n", err.message);
  assert_int_equal(status, DT_OK);
  return s;
}

static void tensors_are_found_by_name_with_their_shape_and_data(void **state) {
  (void)state;
  unsigned char *bytes;
  const char *header = "{\"__metadata__\":{\"format\":\"pt\"},"
                       "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                       "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ";
  st *s = header_opens(header, 20, &bytes);
  const st_tensor *b = st_find(s, "b");
  assert_non_null(b);
  assert_string_equal(b->dtype, "F16");
  assert_int_equal(b->rank, 2);
  assert_int_equal(b->shape[0], 2);
  assert_int_equal(b->shape[1], 3);
  assert_int_equal(b->size, 12);
  assert_int_equal(b->offset, 8 + strlen(header) + 8);
  assert_int_equal(st_find(s, "a")->offset, 8 + strlen(header));
  assert_ptr_equal(st_find(s, "a")->source->bytes, bytes);
  assert_null(st_find(s, "c"));
  assert_null(st_find(s, "__metadata__"));
  st_close(s);
  free(bytes);
}

static void scalars_and_empty_tensors_and_no_tensors_at_all_are_legal(void **state) {
  (void)state;
  unsigned char *bytes;
  st *s = header_opens("{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                       "\"e\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[4,4]},"
                       "\"f\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                       4, &bytes);
  assert_int_equal(st_find(s, "s")->rank, 0);
  assert_int_equal(st_find(s, "e")->size, 0);
  st_close(s);
  free(bytes);
  st_close(header_opens("{}", 0, &bytes));
  free(bytes);
}

static void types_that_nobody_uses_here_are_tolerated(void **state) {
  (void)state;
  static const struct {
    const char *dtype;
    int size;
  } known[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2},
               {"U16", 2},  {"F16", 2}, {"BF16", 2}, {"I32", 4},     {"U32", 4},     {"F32", 4},
               {"F64", 8},  {"I64", 8}, {"U64", 8},  {"F4_NEW", 5}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char header[128];
    snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[1,1],\"data_offsets\":[0,%d]}}",
             known[i].dtype, known[i].size);
    unsigned char *bytes;
    st *s = header_opens(header, (size_t)known[i].size, &bytes);
    assert_string_equal(st_find(s, "t")->dtype, known[i].dtype);
    st_close(s);
    free(bytes);
  }
}

static void a_header_length_that_lies_is_refused(void **state) {
  (void)state;
  unsigned char huge[16];
  memset(huge, 0xff, sizeof huge);
  bytes_fail(huge, sizeof huge, "w.safetensors: header length 18446744073709551615, expected at most 100000000");
  bytes_fail(huge, 5, "w.safetensors: found 5 bytes, expected at least the 8 of the header's length");
  bytes_fail("", 0, "found 0 bytes");
  unsigned char more[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
  bytes_fail(more, sizeof more, "header length 3, but only 2 bytes follow: the file is truncated");
  more[0] = 0;
  bytes_fail(more, 8, "w.safetensors: header: not valid JSON");
}

static void every_truncation_of_a_good_file_is_refused(void **state) {
  (void)state;
  size_t size;
  unsigned char *bytes = build("{\"a\":" ONE "}", 8, &size);
  for (size_t n = 0; n < size; n++) {
    unsigned char *cut = malloc(n + !n);
    memcpy(cut, bytes, n);
    bytes_fail(cut, n, "w.safetensors: ");
    free(cut);
  }
  bytes_fail(bytes, size - 1, "tensor a: data_offsets [0, 8], but the file has only 7 bytes of data");
  free(bytes);
}

static void a_header_that_is_not_an_object_in_utf8_json_is_refused(void **state) {
  (void)state;
  header_fails("{\"a\":", 0, "header: not valid JSON (near byte");
  header_fails("[1]", 0, "header: expected one JSON object");
  header_fails("{} x", 0, "header: expected one JSON object and nothing after it");
  header_fails("{\"\xff\":" ONE "}", 8, "the header is not valid UTF-8");
  header_fails("{\"a\\nb\":" ONE "}", 8, "a tensor name that contains a control character");
  header_fails("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ of the header: expected an object of strings");
  header_fails("{\"__metadata__\":[]}", 0, "__metadata__ of the header: expected an object of strings");
}

static void a_header_nested_a_million_deep_is_refused(void **state) {
  (void)state;
  size_t depth = 1000000;
  char *header = malloc(depth + 1);
  memset(header, '[', depth);
  header[depth] = 0;
  header_fails(header, 0, "header: not valid JSON");
  for (size_t i = 0; i + 4 < depth; i += 5) memcpy(header + i, "{\"a\":", 5);
  header_fails(header, 0, "header: not valid JSON");
  free(header);
}

static void an_entry_without_a_proper_dtype_shape_or_place_is_refused(void **state) {
  (void)state;
  header_fails("{\"a\":7}", 0, "tensor a: expected a dtype");
  header_fails("{\"a\":{\"dtype\":3,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor a: expected a dtype");
  header_fails("{\"a\":{\"dtype\":\"F32_BUT_MUCH_TOO_LONG\",\"shape\":[],\"data_offsets\":[0,8]}}", 8,
               "expected a dtype");
  header_fails("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "tensor a: expected a shape");
  header_fails("{\"a\":{\"dtype\":\"F32\",\"shape\":\"2\",\"data_offsets\":[0,8]}}", 8, "tensor a: expected a shape");
  static const char *const dim[] = {"-2", "2.5", "\"2\"", "1e300", "null", "[2]"};
  for (size_t i = 0; i < sizeof dim / sizeof *dim; i++) {
    char header[128];
    snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,%s],\"data_offsets\":[0,8]}}", dim[i]);
    header_fails(header, 8, "w.safetensors: tensor a: dimension 1 of its shape is not a whole number");
  }
  static const char *const offsets[] = {"[0]",      "[0,8,8]", "[\"0\",\"8\"]",         "[-8,0]", "[0.5,8.5]",
                                        "[0,1e99]", "8",       "{\"a\":0,\"b\":\"8\"}", "null",   "[[0],[8]]"};
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    char header[128];
    snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":%s}}", offsets[i]);
    header_fails(header, 8, "w.safetensors: tensor a: expected data_offsets, two whole numbers");
  }
  header_fails("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "expected data_offsets");
  header_fails("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
               "data_offsets [8, 0] end before they begin");
}

static void a_shape_that_does_not_match_the_bytes_is_refused(void **state) {
  (void)state;
  header_fails("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
               "w.safetensors: tensor a: found 8 bytes, expected 12 for F32 [3]");
  header_fails("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,4]}}", 4,
               "tensor a: found 4 bytes, expected 8 for BF16 [2, 2]");
  /* 2^32 * 2^32 * 4 is 0 modulo 2^64 */
  header_fails("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
               "tensor a: F32 [4294967296, 4294967296] has more bytes than a file can hold");
}

static void overlaps_holes_and_trailing_bytes_are_refused(void **state) {
  (void)state;
  header_fails("{\"a\":" ONE ",\"b\":" ONE "}", 8,
               "tensor b: data begins at 0, expected 8 (it overlaps another tensor)");
  header_fails("{\"a\":" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
               "tensor b: data begins at 4, expected 8 (it overlaps another tensor)");
  header_fails("{\"a\":" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}", 20,
               "tensor b: data begins at 12, expected 8 (there is a hole before it)");
  header_fails("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
               "tensor a: data begins at 4, expected 0");
  header_fails("{\"a\":" ONE "}", 9, "found 9 bytes of data, expected 8: something follows the last tensor");
  header_fails("{}", 1, "found 1 bytes of data, expected 0");
}

static void a_tensor_listed_twice_is_refused(void **state) {
  (void)state;
  header_fails("{\"a\":" ONE ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", 16,
               "w.safetensors: tensor a: listed twice in the header");
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static void folder_fails(const char *folder, const char *part) {
  st *s = NULL;
  dt_error err = {0};
  dt_status status = st_open_folder(folder, &s, &err);
  check_message(status, &err, part);
  assert_null(s);
}

static void write_text(const char *folder, const char *name, const char *text) {
  temp_write(folder, name, text, strlen(text));
}

static void an_empty_folder_is_said_to_have_no_weights(void **state) {
  (void)state;
  char *folder = temp_folder();
  folder_fails(folder, "no model.safetensors or model.safetensors.index.json in /tmp/");
  temp_remove(folder);
}

static void something_other_than_a_file_is_refused(void **state) {
  (void)state;
  char *folder = temp_folder(), path[256];
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  folder_fails(folder, "/model.safetensors: not a regular file");
  remove(path);
  assert_int_equal(mkdir(path, 0700), 0);
  folder_fails(folder, "/model.safetensors: not a regular file");
  rmdir(path);
  write_text(folder, "model.safetensors", "");
  folder_fails(folder, "/model.safetensors: found 0 bytes");
  temp_remove(folder);
}

#define INDEX "model.safetensors.index.json"
#define TWO_SHARDS "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}"

static void shards_are_read_through_their_index_and_through_links(void **state) {
  (void)state;
  char *folder = temp_folder(), from[256];
  write_weights(folder, "1.safetensors", "{\"a\":" ONE "}", 8);
  write_weights(folder, "blob", "{\"b\":" ONE ",\"unlisted\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}}",
                9);
  snprintf(from, sizeof from, "%s/2.safetensors", folder);
  assert_int_equal(symlink("blob", from), 0); /* as in Hugging Face's cache */
  write_text(folder, INDEX, TWO_SHARDS);
  st *s;
  dt_error err = {0};
  assert_int_equal(st_open_folder(folder, &s, &err), DT_OK);
  assert_non_null(strstr(st_find(s, "a")->source->name, "/1.safetensors"));
  assert_non_null(strstr(st_find(s, "b")->source->name, "/2.safetensors"));
  st_close(s);
  temp_remove(folder);
}

/* A file that is cut short after it was checked, and before its data is read, gives an error and not a signal. */
static void a_file_that_is_cut_short_meanwhile_is_an_error(void **state) {
  (void)state;
  char *folder = temp_folder(), path[256];
  write_weights(folder, "model.safetensors", "{\"a\":" ONE "}", 8);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  st *s;
  dt_error err = {0};
  assert_int_equal(st_open_folder(folder, &s, &err), DT_OK);
  const st_tensor *a = st_find(s, "a");
  unsigned char data[8];
  assert_int_equal(source_read(a->source, a->offset, data, 8, &err), DT_OK);
  assert_int_equal(truncate(path, (off_t)a->offset + 7), 0);
  assert_int_equal(source_read(a->source, a->offset, data, 7, &err), DT_OK);
  check_message(source_read(a->source, a->offset, data, 8, &err), &err,
                "/model.safetensors: found 69 bytes, expected at least 70: it was truncated while it was read");
  st_close(s);
  temp_remove(folder);
}

static void an_index_that_lies_is_refused(void **state) {
  (void)state;
  char *folder = temp_folder();
  write_weights(folder, "1.safetensors", "{\"a\":" ONE "}", 8);
  write_text(folder, INDEX, TWO_SHARDS);
  folder_fails(folder, "/2.safetensors: no such file");
  write_weights(folder, "2.safetensors", "{\"c\":" ONE "}", 8);
  folder_fails(folder, INDEX ": tensor b: listed in 2.safetensors, which lacks it");
  write_weights(folder, "2.safetensors", "{\"a\":" ONE "}", 8);
  folder_fails(folder, "/2.safetensors, expected in one file");
  write_weights(folder, "2.safetensors", "{\"b\":" ONE "}", 8);
  write_text(folder, INDEX, "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\"}}");
  folder_fails(folder, INDEX ": tensor a: listed in 2.safetensors, found in 1.safetensors");
  write_text(folder, INDEX, "{\"weight_map\":{\"a\":[\"1.safetensors\"]}}");
  folder_fails(folder, INDEX ": weight_map of tensor a: expected a file name");
  write_text(folder, INDEX, "{\"weight_map\":{}}");
  folder_fails(folder, INDEX ": weight_map is empty");
  write_text(folder, INDEX, "{\"weights\":{}}");
  folder_fails(folder, INDEX ": expected weight_map");
  write_text(folder, INDEX, "{\"weight_map\":{\"a\":");
  folder_fails(folder, INDEX ": not valid JSON");
  write_text(folder, INDEX, "[]");
  folder_fails(folder, INDEX ": expected one JSON object");
  temp_remove(folder);
}

static void a_shard_outside_the_folder_is_refused(void **state) {
  (void)state;
  static const char *const name[] = {"/etc/passwd", "../1.safetensors", "..", "x/1.safetensors", ""};
  char *folder = temp_folder(), text[128];
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", name[i]);
    write_text(folder, INDEX, text);
    folder_fails(folder, "\", expected a name in this folder");
  }
  temp_remove(folder);
}

static void a_shard_of_a_name_that_no_file_can_have_is_refused(void **state) {
  (void)state;
  char *folder = temp_folder(), text[512];
  for (int length = NAME_MAX; length <= NAME_MAX + 1; length++) {
    snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%0*d\"}}", length, 1);
    write_text(folder, INDEX, text);
    folder_fails(folder, length > NAME_MAX ? "expected a name in this folder" : "no such file");
  }
  temp_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_found_by_name_with_their_shape_and_data),
      cmocka_unit_test(scalars_and_empty_tensors_and_no_tensors_at_all_are_legal),
      cmocka_unit_test(types_that_nobody_uses_here_are_tolerated),
      cmocka_unit_test(a_header_length_that_lies_is_refused),
      cmocka_unit_test(every_truncation_of_a_good_file_is_refused),
      cmocka_unit_test(a_header_that_is_not_an_object_in_utf8_json_is_refused),
      cmocka_unit_test(a_header_nested_a_million_deep_is_refused),
      cmocka_unit_test(an_entry_without_a_proper_dtype_shape_or_place_is_refused),
      cmocka_unit_test(a_shape_that_does_not_match_the_bytes_is_refused),
      cmocka_unit_test(overlaps_holes_and_trailing_bytes_are_refused),
      cmocka_unit_test(a_tensor_listed_twice_is_refused),
      cmocka_unit_test(an_empty_folder_is_said_to_have_no_weights),
      cmocka_unit_test(something_other_than_a_file_is_refused),
      cmocka_unit_test(shards_are_read_through_their_index_and_through_links),
      cmocka_unit_test(a_file_that_is_cut_short_meanwhile_is_an_error),
      cmocka_unit_test(an_index_that_lies_is_refused),
      cmocka_unit_test(a_shard_outside_the_folder_is_refused),
      cmocka_unit_test(a_shard_of_a_name_that_no_file_can_have_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
