/* How models are distinguished. */
#include "unit.h"

#include "files/identity.h"
#include "system/hash.h"
#include "temp_files.h"

#include <stdbool.h>
#include <string.h>

#define ENDS 65536
#define PIECE 4096
#define WHOLE (2 * ENDS + 64 * PIECE) /* bytes: up to this size, all of a file counts */

static char path[300];

typedef struct {
  char text[DIGEST_TEXT];
} kept;

static kept model_at(const char *where) {
  kept k = {""};
  identity_model(where, k.text);
  return k;
}

static bool same(kept a, kept b) { return !strcmp(a.text, b.text); }

/* The digest of a file of `size` bytes, all of which are 0 except for the one at `at` (-1: none). */
static kept digest_of(const char *folder, size_t size, long at) {
  char *bytes = calloc(size, 1);
  if (at >= 0) bytes[at] = 1;
  temp_write(folder, "model.gguf", bytes, size);
  free(bytes);
  snprintf(path, sizeof path, "%s/model.gguf", folder);
  return model_at(path);
}

static void of_a_small_file_every_byte_counts(void **state) {
  (void)state;
  char *folder = temp_folder();
  kept plain = digest_of(folder, WHOLE, -1);
  for (long at = WHOLE - 1; at >= 0; at -= 4999) assert_false(same(digest_of(folder, WHOLE, at), plain));
  assert_false(same(digest_of(folder, WHOLE - 1, -1), plain));
  assert_true(same(digest_of(folder, WHOLE, -1), plain));
  temp_remove(folder);
}

static void of_a_large_file_its_ends_and_64_pieces_count(void **state) {
  (void)state;
  char *folder = temp_folder();
  const long size = 4 << 20, step = (size - 2 * ENDS - PIECE) / 64;
  kept plain = digest_of(folder, (size_t)size, -1);
  const long seen[] = {0,           ENDS - 1, ENDS, ENDS + PIECE - 1, ENDS + 63 * step, ENDS + 63 * step + PIECE - 1,
                       size - ENDS, size - 1};
  const long unseen[] = {ENDS + PIECE, ENDS + step - 1, size - ENDS - 1};
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
    assert_false(same(digest_of(folder, (size_t)size, seen[i]), plain));
  for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
    assert_true(same(digest_of(folder, (size_t)size, unseen[i]), plain));
  assert_false(same(digest_of(folder, (size_t)size + 1, -1), plain));
  temp_remove(folder);
}

static void of_a_folder_names_and_contents_count_and_hidden_files_do_not(void **state) {
  (void)state;
  char *folder = temp_folder();
  assert_string_equal(model_at(folder).text, ""); /* there is no model */
  temp_write(folder, "config.json", "{}", 2);
  kept plain = model_at(folder);
  temp_write(folder, ".cache", "x", 1);
  assert_true(same(model_at(folder), plain));
  temp_write(folder, "more.json", "", 0);
  assert_false(same(model_at(folder), plain));
  temp_remove(folder);
  char *other = temp_folder();
  temp_write(other, "config.json", "{}", 2);
  assert_true(same(model_at(other), plain)); /* in whatever folder it is */
  temp_remove(other);
  assert_string_equal(model_at("/nowhere").text, "");
  assert_string_equal(model_at(NULL).text, "");
}

static void the_program_has_a_build(void **state) {
  (void)state;
  kept first, second, text;
  identity_build(first.text), identity_build(second.text), identity_text("", 0, text.text);
  assert_true(same(first, second));
  assert_false(same(first, text));
}

static char *read_text(const char *name, size_t *len) {
  FILE *file = fopen(name, "rb");
  char *text = calloc(1, 4096);
  assert_non_null(file);
  *len = fread(text, 1, 4095, file);
  fclose(file);
  return text;
}

/* Two texts with the same FNV-1a 64 are still two texts, both as policies and as their modules. */
static void twins_are_told_apart(void **state) {
  (void)state;
  size_t n, m;
  char *keeper = read_text(SOURCE_DIR "/tests/data/twins/keeper.lua", &n);
  char *thief = read_text(SOURCE_DIR "/tests/data/twins/thief.lua", &m);
  assert_true(hash_bytes(HASH_START, keeper, n) == hash_bytes(HASH_START, thief, m));
  kept a, b;
  identity_text(keeper, n, a.text), identity_text(thief, m, b.text);
  assert_false(same(a, b));
  kept with_a = a, with_b = a;
  identity_module("m.lua", keeper, n, with_a.text), identity_module("m.lua", thief, m, with_b.text);
  assert_false(same(with_a, with_b));
  assert_false(same(with_a, a));
  free(keeper), free(thief);
}

/* A digest is BLAKE2b-256 of its kind, followed by the bytes. */
static void a_digest_is_blake2b(void **state) {
  (void)state;
  digest d;
  char text[DIGEST_TEXT];
  digest_begin(&d, "abc");
  digest_end(&d, text);
  assert_string_equal(
      text, "4013bf000c244950c4cc4b162da3f91d01e00b5b642af252f1412bf90b4e7dbf"); /* b2sum -l 256 <(printf 'abc\0') */
  digest_begin(&d, "abc");
  digest_add_text(&d, "de"), digest_add(&d, "f", 1), digest_add(&d, "", 0);
  digest_end(&d, text);
  assert_string_equal(text,
                      "3ae5bee89a1f2b61f87205947683ae34e4a5075cd5dcb8340638db3d0fd7a846"); /* printf 'abc\0de\0f' */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_a_small_file_every_byte_counts),
      cmocka_unit_test(of_a_large_file_its_ends_and_64_pieces_count),
      cmocka_unit_test(of_a_folder_names_and_contents_count_and_hidden_files_do_not),
      cmocka_unit_test(the_program_has_a_build),
      cmocka_unit_test(twins_are_told_apart),
      cmocka_unit_test(a_digest_is_blake2b),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
