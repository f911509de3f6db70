/* Views of weights, and what an upload reports if a file shrinks while it is read. */
#include "model/model.h"
#include "pair/backends.h"
#include "temp_files.h"
#include "unit.h"

#include <unistd.h>

/* Checks rows first..first+count-1 of a view of the bytes 0, 1, 2, .., with two bytes per row: they must be the listed
 * rows of the source. */
static void reads(dt_matrix m, int first, int count, const int *rows) {
  uint8_t bytes[256], got[64];
  for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
  dt_source source = source_of_memory("bytes", bytes, sizeof bytes);
  m.source = &source, m.dtype = DT_F16, m.cols = 1;
  ok(dt_read_rows(&m, first, count, got, &err));
  for (int i = 0; i < count; i++) {
    assert_int_equal(got[2 * i], m.offset + 2 * (uint64_t)rows[i]);
    assert_int_equal(got[2 * i + 1], m.offset + 2 * (uint64_t)rows[i] + 1);
  }
}

static void rows_of_a_view_are_found_where_its_order_says(void **state) {
  (void)state;
  reads((dt_matrix){.rows = 8, .group = 8, .stride = 8}, 0, 8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
  reads((dt_matrix){.rows = 8, .group = 8, .stride = 8, .offset = 7}, 3, 2, (const int[]){3, 4});
  /* q of GPT-NeoX: two heads of four rows, with k and v between them */
  reads((dt_matrix){.rows = 8, .group = 4, .stride = 12}, 0, 8, (const int[]){0, 1, 2, 3, 12, 13, 14, 15});
  reads((dt_matrix){.rows = 8, .group = 4, .stride = 12}, 2, 4, (const int[]){2, 3, 12, 13});
  /* q of a llama in GGUF: row h D + p D/2 + j is at h D + 2 j + p */
  reads((dt_matrix){.rows = 12, .group = 6, .stride = 6, .zipped = true}, 0, 12,
        (const int[]){0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11});
  reads((dt_matrix){.rows = 12, .group = 6, .stride = 6, .zipped = true}, 5, 3, (const int[]){5, 6, 8});
  reads((dt_matrix){.rows = 12, .group = 6, .stride = 6, .zipped = true}, 1, 2, (const int[]){2, 4});
  reads((dt_matrix){.rows = 8, .group = 2, .stride = 2, .zipped = true}, 0, 8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
}

/* Two blocks of MXFP4 in two sources, and the block that gguf makes of them. */
static void blocks_whose_scales_are_apart_become_blocks(void **state) {
  (void)state;
  uint8_t codes[64] = {0}, scales[4] = {1, 2, 3, 4}, got[34];
  codes[32] = 0x21, codes[33] = 0x43, codes[40] = 0x65, codes[63] = 0xf0;
  dt_source source = source_of_memory("codes", codes, sizeof codes), its = source_of_memory("scales", scales, 4);
  const dt_matrix all = {
      .source = &source, .dtype = DT_MXFP4, .rows = 2, .cols = 64, .group = 2, .stride = 2, .scales = &its};
  const dt_matrix second = dt_some_rows(all, 1, 1);
  ok(dt_read_rows(&second, 0, 1, got, &err));
  assert_int_equal(got[0], 3);
  assert_int_equal(got[17], 4);
  /* numbers 0..3 are 1, 2, 3, 4; 16 and 17 are 5 and 6; in the second block the last is 15 */
  const uint8_t first[] = {0x51, 0x62, 0x03, 0x04, 0};
  assert_memory_equal(got + 1, first, sizeof first);
  assert_int_equal(got[33], 0xf0);
  its.size = 3; /* the file is cut short */
  fails(dt_read_rows(&second, 0, 1, got, &err), DT_EINPUT, "scales: found 3 bytes, expected at least 4");
}

/* From two matrices of 4 outputs and 3 inputs, stored input by input: the second one, and its odd outputs. */
static void rows_that_are_columns_of_the_source_are_gathered(void **state) {
  (void)state;
  float numbers[24], got[12];
  for (int i = 0; i < 24; i++) numbers[i] = (float)i;
  dt_source source = source_of_memory("numbers", numbers, sizeof numbers);
  const dt_matrix all = {
      .source = &source, .dtype = DT_F32, .rows = 4, .cols = 3, .group = 4, .stride = 4, .across = 4};
  const dt_matrix one = dt_one_of(all, 1, 4), odd = dt_part_of_heads(one, 2, 1, 1);
  ok(dt_read_rows(&one, 1, 3, got, &err));
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) assert_true(got[3 * r + c] == 12 + 4 * c + r + 1);
  ok(dt_read_rows(&odd, 0, 2, got, &err));
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 3; c++) assert_true(got[3 * r + c] == 12 + 4 * c + 2 * r + 1);
}

static void count_read(void *reads, const dt_source *source, uint64_t offset, const void *bytes, size_t n) {
  (void)source, (void)offset, (void)bytes, (void)n;
  ++*(int *)reads;
}

static int reads_of(dt_matrix m, int first, int count) {
  uint8_t bytes[256] = {0}, got[64];
  int n = 0;
  source_watch watch = {count_read, &n};
  dt_source source = source_of_memory("bytes", bytes, sizeof bytes);
  source.watch = &watch, m.source = &source, m.dtype = DT_F16, m.cols = 1;
  ok(dt_read_rows(&m, first, count, got, &err));
  return n;
}

/* A separate read for each row would take longer than reading the data. */
static void half_a_head_is_one_read(void **state) {
  (void)state;
  const dt_matrix zipped = {.rows = 16, .group = 8, .stride = 8, .zipped = true};
  assert_int_equal(reads_of((dt_matrix){.rows = 16, .group = 16, .stride = 16}, 0, 16), 1);
  assert_int_equal(reads_of(zipped, 0, 16), 4);
  assert_int_equal(reads_of(zipped, 0, 4), 1);
  assert_int_equal(reads_of(zipped, 1, 1), 1);
  assert_int_equal(reads_of(zipped, 3, 2), 2); /* the end of one half and the beginning of the other */
  assert_int_equal(reads_of(zipped, 7, 2), 1); /* the end of a head and the beginning of the next are adjacent */
}

static void a_view_may_end_where_its_source_does_and_not_behind(void **state) {
  (void)state;
  uint16_t numbers[6] = {0}, got[6];
  dt_source source = source_of_memory("six numbers", numbers, sizeof numbers);
  dt_matrix m = {.source = &source, .dtype = DT_F16, .rows = 2, .cols = 3, .group = 2, .stride = 2};
  ok(dt_read_rows(&m, 0, 2, got, &err));
  m.offset = 1;
  fails(dt_read_rows(&m, 0, 2, got, &err), DT_EINPUT,
        "six numbers: found 12 bytes, expected at least 13: it was truncated while it was read");
  dt_matrix zipped = {.source = &source,
                      .dtype = DT_F16,
                      .rows = 6,
                      .cols = 1,
                      .group = 6,
                      .stride = 6,
                      .zipped = true}; /* its first half ends before the source's last row */
  ok(dt_read_rows(&zipped, 0, 6, got, &err));
  zipped.offset = 3;
  ok(dt_read_rows(&zipped, 0, 2, got, &err));
  fails(dt_read_rows(&zipped, 0, 3, got, &err), DT_EINPUT,
        "six numbers: found 12 bytes, expected at least 13: it was truncated while it was read");
}

/* Cuts the file by one byte, or by so much that another matrix lacks its rows. */
static void a_file_cut_short_before_its_upload_is_an_error_and_leaves_nothing(void **state) {
  (void)state;
  char *folder = temp_folder(), command[1024], path[256];
  snprintf(command, sizeof command, "cp '" SOURCE_DIR "/models/mini-draft/'* '%s'", folder);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  for (int part = 0; part < 16; part++) {
    assert_int_equal(system(command), 0);
    model *m;
    ok(model_open(folder, &m, &err));
    const char *variant;
    const dt_backend_ops *ops = backend_find("cpu", &variant, NULL);
    dt_backend_options options = {.threads = 2};
    dt_backend *backend;
    dt_weights *weights = NULL;
    ok(ops->open(&options, &backend, &err));
    off_t size = (off_t)model_desc(m)->embed.source->size;
    assert_int_equal(truncate(path, part ? size * part / 16 : size - 1), 0);
    fails(ops->upload(backend, model_desc(m), NULL, &weights, &err), DT_EINPUT, "it was truncated while it was read");
    assert_null(weights);
    dt_memory left = ops->memory(backend);
    assert_int_equal(left.weights + left.scratch, 0);
    ops->close(backend);
    model_close(m);
  }
  temp_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_whose_scales_are_apart_become_blocks),
      cmocka_unit_test(rows_that_are_columns_of_the_source_are_gathered),
      cmocka_unit_test(rows_of_a_view_are_found_where_its_order_says),
      cmocka_unit_test(half_a_head_is_one_read),
      cmocka_unit_test(a_view_may_end_where_its_source_does_and_not_behind),
      cmocka_unit_test(a_file_cut_short_before_its_upload_is_an_error_and_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
