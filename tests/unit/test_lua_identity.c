/* What models are told apart by. */
#include "unit.h"

#include "identity.h"
#include "temp_files.h"

#define ENDS 65536
#define PIECE 4096
#define WHOLE (2 * ENDS + 64 * PIECE) /* bytes: no more, and all of a file counts */

static char path[300];

/* The hash of a file of `size` bytes, all 0 but the one at `at`; -1: none. */
static uint64_t hash_of(const char *folder, size_t size, long at) {
  char *bytes = calloc(size, 1);
  if (at >= 0) bytes[at] = 1;
  temp_write(folder, "model.gguf", bytes, size);
  free(bytes);
  snprintf(path, sizeof path, "%s/model.gguf", folder);
  return identity_model(path);
}

static void of_a_small_file_every_byte_counts(void **state) {
  (void)state;
  char *folder = temp_folder();
  uint64_t hash = hash_of(folder, WHOLE, -1);
  for (long at = WHOLE - 1; at >= 0; at -= 4999) assert_true(hash_of(folder, WHOLE, at) != hash);
  assert_true(hash_of(folder, WHOLE - 1, -1) != hash);
  assert_true(hash_of(folder, WHOLE, -1) == hash);
  temp_remove(folder);
}

static void of_a_large_file_its_ends_and_64_pieces_count(void **state) {
  (void)state;
  char *folder = temp_folder();
  const long size = 4 << 20, step = (size - 2 * ENDS - PIECE) / 64;
  uint64_t hash = hash_of(folder, (size_t)size, -1);
  const long seen[] = {0,           ENDS - 1, ENDS, ENDS + PIECE - 1, ENDS + 63 * step, ENDS + 63 * step + PIECE - 1,
                       size - ENDS, size - 1};
  const long unseen[] = {ENDS + PIECE, ENDS + step - 1, size - ENDS - 1};
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) assert_true(hash_of(folder, (size_t)size, seen[i]) != hash);
  for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
    assert_true(hash_of(folder, (size_t)size, unseen[i]) == hash);
  assert_true(hash_of(folder, (size_t)size + 1, -1) != hash);
  temp_remove(folder);
}

static void of_a_folder_names_and_contents_count_and_hidden_files_do_not(void **state) {
  (void)state;
  char *folder = temp_folder();
  temp_write(folder, "config.json", "{}", 2);
  uint64_t hash = identity_model(folder);
  temp_write(folder, ".cache", "x", 1);
  assert_true(identity_model(folder) == hash);
  temp_write(folder, "more.json", "", 0);
  assert_true(identity_model(folder) != hash);
  temp_remove(folder);
  char *other = temp_folder();
  temp_write(other, "config.json", "{}", 2);
  assert_true(identity_model(other) == hash); /* wherever it lies */
  temp_remove(other);
  assert_true(identity_model("/nowhere") == 0);
}

static void the_program_has_a_build(void **state) {
  (void)state;
  assert_true(identity_build() == identity_build());
  assert_true(identity_build() != identity_text("", 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_a_small_file_every_byte_counts),
      cmocka_unit_test(of_a_large_file_its_ends_and_64_pieces_count),
      cmocka_unit_test(of_a_folder_names_and_contents_count_and_hidden_files_do_not),
      cmocka_unit_test(the_program_has_a_build),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
