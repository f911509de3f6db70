/* Tables of pass costs: how they are smoothed, looked up, written, read, stored and measured. */
#include "unit.h"

#include "dtrun_fake.h"

#include "measure/costs.h"
#include "temp_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char TABLE[] = "{\"contexts\": [128, 1152], \"rows\": [1, 2, 10],"
                            " \"target\": [[1, 2, 4], [3, 4, 6]], \"draft\": [[0.25, 0.5, 1], [0.25, 0.5, 1]]}";

#define TWO_ROWS "{\"contexts\": [128], \"rows\": [1, 2], \"target\": [[1, 2]]"
#define ONE_ROW "{\"contexts\": [128], \"rows\": [1], \"target\": [[1]]"

static dtl_costs parsed(const char *json) {
  dtl_costs costs;
  const char *wrong = costs_parse(json, NULL, &costs);
  if (wrong) fail_msg("%s", wrong);
  return costs;
}

static void between_measured_rows_and_contexts_costs_are_straight_lines(void **state) {
  (void)state;
  dtl_costs c = parsed(TABLE);
  assert_float_equal(costs_pass(&c, c.target, 1, 128), 1, 1e-12);
  assert_float_equal(costs_pass(&c, c.target, 6, 128), 3, 1e-12);
  assert_float_equal(costs_pass(&c, c.target, 14, 128), 5, 1e-12); /* beyond the last entry, the slope continues */
  assert_float_equal(costs_pass(&c, c.target, 2, 640), 3, 1e-12);
  assert_float_equal(costs_pass(&c, c.draft, 1, 5000), 0.25, 1e-12);
}

static void the_first_draft_pass_costs_so_much_more_than_another(void **state) {
  (void)state;
  dtl_costs c = parsed("{\"batch\": 2, \"contexts\": [128, 1152], \"rows\": [1, 2], \"target\": [[1, 2], [1, 2]],"
                       " \"draft\": [[2, 4], [4, 8]], \"first\": [3, 9]}");
  assert_float_equal(costs_first(&c, 2, 1), 3, 1e-12);
  assert_float_equal(costs_first(&c, 4, 1), 5, 1e-12);
  assert_float_equal(costs_first(&c, 1, 1), 2, 1e-12); /* half a row: half of 2, and 1 */
  assert_float_equal(costs_first(&c, 2, 640), 6, 1e-12);
  assert_float_equal(costs_first(&c, 2, 5000), 9, 1e-12);
  c = parsed("{\"batch\": 2, \"contexts\": [128, 1152], \"rows\": [1, 2], \"target\": [[1, 2], [1, 2]],"
             " \"draft\": [[2, 4], [4, 8]]}");
  assert_true(c.drafts);
  assert_float_equal(costs_first(&c, 2, 1), 2, 1e-12); /* without a list for first passes: as a later one */
}

static void fewer_sequences_than_measured_are_parts_of_a_row(void **state) {
  (void)state;
  dtl_costs c =
      parsed("{\"batch\": 8, \"contexts\": [128], \"rows\": [1, 2], \"target\": [[3, 5]], \"draft\": [[1, 4]]}");
  assert_int_equal(c.batch, 8);
  assert_float_equal(costs_pass(&c, c.target, 0.5, 128), 2, 1e-12);
  assert_float_equal(costs_pass(&c, c.draft, 0.5, 128), 0.5, 1e-12); /* the line would be below 0: a share instead */
  assert_float_equal(costs_pass(&c, c.target, 1.5, 128), 4, 1e-12);
}

/* A pass of one row has 8 distinct experts, a pass of two rows 14. Each additional expert takes 0.125 ms, in passes of
 * nine rows 0.0625 ms. */
static const char EXPERTS[] =
    "{\"contexts\": [128], \"rows\": [1, 2, 9], \"target\": [[4, 5, 9]], \"experts\": [8, 14, 50],"
    " \"expert\": [0.125, 0.125, 0.0625]}";

static void a_pass_takes_longer_by_the_experts_that_it_reads(void **state) {
  (void)state;
  dtl_costs c = parsed(EXPERTS);
  assert_float_equal(costs_target(&c, 2, 128, 0), 5, 1e-12); /* the usual number */
  assert_float_equal(costs_target(&c, 2, 128, 14), 5, 1e-12);
  assert_float_equal(costs_target(&c, 2, 128, 16), 5.25, 1e-12);
  assert_float_equal(costs_target(&c, 2, 128, 8), 4.25, 1e-12);
  assert_float_equal(costs_target(&c, 1, 128, 9.5), 4.1875, 1e-12);
  assert_float_equal(costs_target(&c, 5.5, 128, 33), 7 + 0.09375, 1e-12); /* halfway between 2 and 9 */
  assert_float_equal(costs_target(&c, 0.5, 128, 12), 3.5 + 0.5, 1e-12);   /* below the first and */
  assert_float_equal(costs_target(&c, 16, 128, 66), 9 + 4 + 1, 1e-12);    /* beyond the last: the nearest one's */
  assert_float_equal(costs_target(&c, 9, 128, 1e9), 9 + 0.0625 * (1e9 - 50), 1e-3);
  c.expert[2] = 1e9;
  assert_true(costs_target(&c, 9, 128, 1) == 1e-6); /* a table that makes no sense still gives a time */
  c = parsed(TABLE);
  assert_true(costs_target(&c, 2, 128, 1000) == costs_pass(&c, c.target, 2, 128));
}

static void the_cost_of_an_expert_is_estimated_from_passes_that_read_more_and_fewer(void **state) {
  (void)state;
  /* an expert takes 0.25 ms; 4 rows were not measured, and 16 rows read hardly more experts than 8 */
  dtl_costs c = {.batch = 1, .n_contexts = 1, .n_rows = 5, .context = {128}, .rows = {1, 2, 4, 8, 16}};
  const int usual[] = {8, 14, 28, 27, 60}, more[] = {0, 4, 0, 30, 6};
  const double longer[] = {0, 1, 0, 7.5, 9}, times[] = {3, 5.5, 11, 15, 31};
  memcpy(c.target[0], times, sizeof times);
  costs_estimate_experts(&c, usual, more, longer);
  const double experts[] = {8, 14, 28, 28, 60}; /* they never decrease */
  for (int i = 0; i < 5; i++) {
    assert_float_equal(c.experts[i], experts[i], 1e-12);
    assert_float_equal(c.expert[i], 0.25, 1e-12);
  }
  assert_null(costs_wrong(&c));
  const int just[] = {0, 4, 0, 30, 7}; /* a tenth more is enough, here together with its neighbour */
  costs_estimate_experts(&c, usual, just, longer);
  assert_float_equal(c.expert[4], 16.5 / 37, 1e-12);
  const int none[5] = {0}, late[] = {0, 0, 0, 30, 0};
  costs_estimate_experts(&c, usual, late, longer);
  assert_float_equal(c.expert[1], 0.25, 1e-12); /* known only for more rows */
  costs_estimate_experts(&c, usual, none, longer);
  const double whole[] = {3 / 8.0, 5.5 / 14, 11 / 28.0, 15 / 28.0, 31 / 60.0}; /* 28 / 52 is more than the whole */
  for (int i = 0; i < 5; i++) assert_float_equal(c.expert[i], whole[i], 1e-12);
  const int same[] = {8, 8, 8, 8, 8};
  costs_estimate_experts(&c, same, none, longer);
  for (int i = 0; i < 5; i++) assert_true(c.expert[i] == 0);
  const double shorter[] = {0, -1, 0, -7.5, 0};
  costs_estimate_experts(&c, usual, more, shorter);
  for (int i = 0; i < 5; i++) assert_true(c.expert[i] == 0);
}

static void a_miss_takes_longer_the_more_passes_are_between(void **state) {
  (void)state;
  dtl_costs c = parsed(ONE_ROW ", \"cache_miss\": [0.25, 0.5, 2]}");
  assert_true(costs_cache_miss(&c, 0) == 0.25 && costs_cache_miss(&c, 1) == 0.5);
  assert_true(costs_cache_miss(&c, 2) == 2 && costs_cache_miss(&c, 1 << 30) == 2);
  c = parsed(ONE_ROW "}"); /* as on another machine */
  for (int i = 0; i < DTL_COST_MISSES; i++) assert_true(costs_cache_miss(&c, i) == COSTS_CACHE_MISS[i]);
}

static void a_context_counts_as_the_next_multiple_of_128(void **state) {
  (void)state;
  dtl_costs c = parsed(TABLE);
  assert_true(costs_pass(&c, c.target, 1, 1) == costs_pass(&c, c.target, 1, 128));
  assert_true(costs_pass(&c, c.target, 1, 129) == costs_pass(&c, c.target, 1, 256));
  assert_true(costs_pass(&c, c.target, 1, 257) > costs_pass(&c, c.target, 1, 256));
  assert_true(costs_pass(&c, c.target, 1, 9000) == costs_pass(&c, c.target, 1, 1152));
}

static void disturbed_times_become_strictly_increasing_from_below(void **state) {
  (void)state;
  dtl_costs c = {.n_contexts = 2, .n_rows = 5};
  const double times[2][5] = {{1, 9, 2, 2, 3}, {5, 1.5, 4, 2.5, 6}};
  for (int k = 0; k < 2; k++) memcpy(c.target[k], times[k], sizeof times[k]);
  costs_straighten(&c, c.target);
  const double expected[2][5] = {{1, 1.5, 2, 2, 3}, {1.5, 1.5, 2.5, 2.5, 6}};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 5; i++) {
      assert_float_equal(c.target[k][i], expected[k][i], 1e-4);
      if (i) assert_true(c.target[k][i] > c.target[k][i - 1]);
    }
}

#define TIMES "one list for each context, of increasing times for each row count, from 1e-6 to 1e9 ms"
#define FIRST "first" FIRST_TIMES
#define FIRST_TIMES " needs one time for each context, not below the draft's time for one row, at most 1e9 ms"
#define COUNTS "experts needs one number for each row count, not decreasing, from 1 to 1e9"
#define EXPERT "expert needs one time for each row count, from 0 to 1e9 ms"
#define CACHE_MISS "cache_miss needs three times, not decreasing, from 0 to 1e9 ms"
static void a_table_that_is_none_is_refused_with_the_reason(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "it is not a JSON object"},
      {"[]", "it is not a JSON object"},
      {"{\"schema\": \"dtrun.costs/1\"}", "its schema is not dtrun.costs/2"},
      {"{}", "contexts is not an ascending list of at most 8 lengths"},
      {"{\"batch\": 0}", "batch is not an integer from 1 to 256"},
      {"{\"batch\": 257}", "batch is not an integer from 1 to 256"},
      {"{\"batch\": 1.5}", "batch is not an integer from 1 to 256"},
      {"{\"batch\": 4294967297}", "batch is not an integer from 1 to 256"},
      {"{\"batch\": \"8\"}", "batch is not an integer from 1 to 256"},
      {"{\"contexts\": [256, 128]}", "contexts is not an ascending list of at most 8 lengths"},
      {"{\"contexts\": [128], \"rows\": [1, 1.5]}", "rows is not an ascending list of at most 96 row counts"},
      {"{\"contexts\": [128], \"rows\": [2], \"target\": [[1]]}", "rows must begin with 1"},
      {"{\"contexts\": [128], \"rows\": [1, 2], \"target\": [[1]]}", "target needs " TIMES},
      {"{\"contexts\": [128], \"rows\": [1, 2], \"target\": [[2, 2]]}", "target needs " TIMES},
      {"{\"contexts\": [128], \"rows\": [1], \"target\": [[1]], \"draft\": [[0]]}", "draft needs " TIMES},
      {"{\"contexts\": [128], \"rows\": [1], \"target\": [[1e307]]}", "target needs " TIMES},
      {ONE_ROW ", \"draft\": [[1]], \"first\": [1, 1]}", FIRST},
      {ONE_ROW ", \"draft\": [[1]], \"first\": [0.999999]}", FIRST},
      {ONE_ROW ", \"draft\": [[1]], \"first\": [1000000000.0001]}", FIRST},
      {ONE_ROW ", \"draft\": [[1]], \"first\": [\"1\"]}", FIRST},
      {ONE_ROW ", \"draft\": [[1, 2]]}", "draft needs " TIMES},
      {ONE_ROW ", \"draft\": [[1]], \"block\": 17}", "block is not an integer from 0 to 16"},
      {ONE_ROW ", \"draft\": [[1]], \"block\": -1}", "block is not an integer from 0 to 16"},
      {ONE_ROW ", \"draft\": [[1]], \"block\": 1.5}", "block is not an integer from 0 to 16"},
      {ONE_ROW ", \"draft\": [[1]], \"block\": \"3\"}", "block is not an integer from 0 to 16"},
      {ONE_ROW ", \"target_sample\": -1e-9}", "target_sample is not a time from 0 to 1e9 ms"},
      {ONE_ROW ", \"target_sample\": 1000000000.0001}", "target_sample is not a time from 0 to 1e9 ms"},
      {ONE_ROW ", \"draft_sample\": \"1\"}", "draft_sample is not a time from 0 to 1e9 ms"},
      {TWO_ROWS ", \"experts\": [1, 2]}", EXPERT},
      {TWO_ROWS ", \"expert\": [1, 2]}", COUNTS},
      {TWO_ROWS ", \"experts\": [8], \"expert\": [1, 1]}", COUNTS},
      {TWO_ROWS ", \"experts\": [0, 0], \"expert\": [1, 1]}", COUNTS},
      {TWO_ROWS ", \"experts\": [0.99, 2], \"expert\": [1, 1]}", COUNTS},
      {TWO_ROWS ", \"experts\": [8, 7.99], \"expert\": [1, 1]}", COUNTS},
      {TWO_ROWS ", \"experts\": [8, 1000000000.0001], \"expert\": [1, 1]}", COUNTS},
      {TWO_ROWS ", \"experts\": [8, \"9\"], \"expert\": [1, 1]}", COUNTS},
      {TWO_ROWS ", \"experts\": [8, 9], \"expert\": [1]}", EXPERT},
      {TWO_ROWS ", \"experts\": [8, 9], \"expert\": [1, -1e-9]}", EXPERT},
      {TWO_ROWS ", \"experts\": [8, 9], \"expert\": [1, 1000000000.0001]}", EXPERT},
      {TWO_ROWS ", \"experts\": [8, 9], \"expert\": 1}", EXPERT},
      {ONE_ROW ", \"cache_miss\": [1, 2]}", CACHE_MISS},
      {ONE_ROW ", \"cache_miss\": [1, 2, 3, 4]}", CACHE_MISS},
      {ONE_ROW ", \"cache_miss\": [1, 3, 2.999]}", CACHE_MISS},
      {ONE_ROW ", \"cache_miss\": [-1e-9, 1, 2]}", CACHE_MISS},
      {ONE_ROW ", \"cache_miss\": [1, 2, 1000000000.0001]}", CACHE_MISS},
      {ONE_ROW ", \"cache_miss\": [1, \"2\", 3]}", CACHE_MISS},
      {ONE_ROW ", \"cache_miss\": 1}", CACHE_MISS},
      {"{\"contexts\": [128], \"rows\": [1], \"target\": [[1000000000.0001]]}", "target needs " TIMES},
      {"{\"contexts\": [128], \"rows\": [1], \"target\": [[0.000000999]]}", "target needs " TIMES},
  };
  dtl_costs costs;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *wrong = costs_parse(cases[i][0], NULL, &costs);
    assert_non_null(wrong);
    assert_string_equal(wrong, cases[i][1]);
  }
}

static void the_least_and_the_largest_time_and_batch_are_taken(void **state) {
  (void)state;
  dtl_costs c = parsed("{\"batch\": 256, \"contexts\": [128], \"rows\": [1, 2], \"target\": [[1e-6, 1e9]]}");
  assert_int_equal(c.batch, 256);
  assert_float_equal(c.target[0][1], 1e9, 1e-12);
  c = parsed(ONE_ROW ", \"draft\": [[1]], \"first\": [1], \"target_sample\": 0, \"draft_sample\": 1e9}");
  assert_true(c.first[0] == 1 && c.target_sample == 0 && c.draft_sample == 1e9);
  c = parsed(TWO_ROWS ", \"experts\": [1, 1e9], \"expert\": [0, 1e9]}");
  assert_true(c.experts[0] == 1 && c.experts[1] == 1e9 && c.expert[0] == 0 && c.expert[1] == 1e9);
  c = parsed(TWO_ROWS ", \"experts\": [8, 8], \"expert\": [1, 1]}"); /* all rows may share their experts */
  assert_true(c.experts[1] == 8);
  c = parsed(ONE_ROW ", \"cache_miss\": [0, 1e9, 1e9]}");
  assert_true(costs_cache_miss(&c, 0) == 0 && costs_cache_miss(&c, 1) == 1e9);
  c = parsed(ONE_ROW ", \"draft\": [[1]], \"first\": [1e9]}");
  assert_true(c.first[0] == 1e9 && c.draft_sample == 0);
}

static void what_is_kept_is_served_to_its_key_alone(void **state) {
  (void)state;
  char *folder = temp_folder(), path[300];
  snprintf(path, sizeof path, "%s/new/folders/costs.json", folder);
  costs_place place = {.key = "this machine", .path = path};
  dtl_costs c = parsed(TABLE), back;
  const double experts[] = {8, 14.5, 50}, expert[] = {0.125, 1.0 / 3, 0};
  c.target_sample = 0.125, c.draft_sample = 0.25, c.first[1] = 0.375;
  assert_string_equal(costs_load(&place, &back), "");
  assert_null(costs_store(&place, &c));
  assert_null(costs_load(&place, &back));
  assert_int_equal(back.n_rows, 3);
  assert_true(back.drafts);
  assert_memory_equal(back.target[1], c.target[1], sizeof(double) * 3);
  assert_true(back.first[0] == c.first[0] && back.first[1] == c.first[1]);
  assert_true(back.target_sample == 0.125 && back.draft_sample == 0.25);
  assert_memory_equal(back.cache_miss, COSTS_CACHE_MISS, sizeof back.cache_miss);
  assert_true(back.experts[0] == 0 && back.expert[2] == 0); /* as in files of versions without experts */
  c.cache_miss[0] = 1.0 / 3, c.cache_miss[1] = 0.5, c.cache_miss[2] = 2;
  memcpy(c.experts, experts, sizeof experts), memcpy(c.expert, expert, sizeof expert);
  assert_null(costs_store(&place, &c));
  assert_null(costs_load(&place, &back));
  assert_memory_equal(back.experts, c.experts, sizeof experts);
  assert_memory_equal(back.cache_miss, c.cache_miss, sizeof c.cache_miss);
  c.draft[1][0] /= 3;
  c.read = 1.0 / 3, c.block = 16;
  assert_null(costs_store(&place, &c));
  assert_null(costs_load(&place, &back));
  assert_true(back.draft[1][0] == c.draft[1][0] && back.read == c.read && back.block == 16);
  assert_memory_equal(back.expert, c.expert, sizeof expert);
  place.key = "another machine";
  assert_string_equal(costs_load(&place, &back), "it was measured by an older version, or on another machine or model");
  temp_remove(folder);
}

#define TABLE_WITHOUT_MISSES "\"contexts\": [128], \"rows\": [1], \"target\": [[1]]}"
static void a_table_of_an_older_version_is_refused_for_its_key(void **state) {
  (void)state;
  dtl_costs c = parsed(TABLE), back;
  char *json = costs_json(&c, "dtrun 0.1.0 9d96a35-dirty 0123456789abcdef, vm, CPU, 2 threads");
  const char *wrong = costs_parse(json, "vm, CPU, 2 threads", &back);
  assert_string_equal(wrong, "it was measured by an older version, or on another machine or model");
  assert_null(costs_parse(json, NULL, &back)); /* given by someone who knows which models it belongs to */
  assert_string_equal(costs_parse("{\"key\": \"vm\", " TABLE_WITHOUT_MISSES, "vm", &back), wrong);
  assert_null(costs_parse("{\"key\": \"vm\", \"cache_miss\": [0, 0, 0], " TABLE_WITHOUT_MISSES, "vm", &back));
  free(json);
}

static void a_damaged_file_says_so_and_is_written_anew(void **state) {
  (void)state;
  char *folder = temp_folder(), path[300];
  snprintf(path, sizeof path, "%s/costs.json", folder);
  costs_place place = {.key = "this machine", .path = path};
  dtl_costs c = parsed(TABLE), back;
  temp_write(folder, "costs.json", "{\"schema\": \"dtrun.co", 20);
  assert_string_equal(costs_load(&place, &back), "it is not a JSON object");
  assert_null(costs_store(&place, &c));
  assert_null(costs_load(&place, &back));
  temp_remove(folder);
}

static void where_nothing_can_be_written_the_reason_is_told_and_nothing_left(void **state) {
  (void)state;
  char *folder = temp_folder(), path[300];
  temp_write(folder, "file", "", 0);
  snprintf(path, sizeof path, "%s/file/costs.json", folder);
  costs_place place = {.key = "this machine", .path = path};
  dtl_costs c = parsed(TABLE);
  assert_string_equal(costs_store(&place, &c), "Not a directory");
  temp_remove(folder);
}

static void copy_file(const char *from, const char *folder, const char *name) {
  char command[600];
  snprintf(command, sizeof command, "cp '%s/%s' '%s/'", from, name, folder);
  if (system(command)) fail_msg("%s", command);
}

static char *key_of(const char *target, int threads, int context, int batch) {
  dt_pair *pair;
  costs_place place;
  dt_error why = {0};
  dt_pair_options options = {.target = target, .backend = "cpu:scalar", .threads = threads};
  ok(dt_pair_open(&options, &pair, &err));
  if (costs_find(pair, context, batch, &place, &why)) fail_msg("%s", why.message);
  dt_pair_close(pair);
  char *key = strdup(place.key);
  costs_leave(&place);
  return key;
}

static void the_key_changes_with_threads_context_and_the_models_files(void **state) {
  (void)state;
  char *folder = temp_folder(), config[300];
  const char *draft = SOURCE_DIR "/models/mini-draft";
  copy_file(draft, folder, "config.json");
  copy_file(draft, folder, "tokenizer.json");
  copy_file(draft, folder, "model.safetensors");
  char *key = key_of(folder, 1, 2048, 1), *same = key_of(folder, 1, 2048, 1), *threads = key_of(folder, 2, 2048, 1),
       *context = key_of(folder, 1, 1024, 1), *batch = key_of(folder, 1, 2048, 8);
  snprintf(config, sizeof config, "%s/config.json", folder);
  FILE *file = fopen(config, "a");
  if (!file || fputc(' ', file) < 0 || fclose(file)) fail_msg("%s", config);
  char *touched = key_of(folder, 1, 2048, 1);
  assert_string_equal(same, key);
  assert_string_not_equal(threads, key);
  assert_string_not_equal(context, key);
  assert_string_not_equal(batch, key);
  assert_string_not_equal(touched, key);
  free(key), free(same), free(threads), free(context), free(batch), free(touched);
  temp_remove(folder);
}

static void count(void *user, int done, int total) {
  int *last = user;
  assert_true(done > *last && done <= total);
  *last = done == total ? -1 : done;
}

static void several_sequences_are_measured_together(void **state) {
  (void)state;
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 7, .context = 40, .eos = -1}, &pair, &err));
  dtl_cost_measuring how = {.batch = 40};
  dtl_costs c;
  dt_error why = {0};
  if (dtl_measure_costs(pair, &how, &c, &why)) fail_msg("%s", why.message);
  assert_int_equal(c.batch, 40);
  assert_int_equal(c.rows[c.n_rows - 1], 12); /* 480 rows in all */
  for (int i = 1; i < c.n_rows; i++)
    assert_true(c.target[0][i] > c.target[0][i - 1] && c.draft[0][i] > c.draft[0][i - 1]);
  dt_pair_close(pair);
}

static void measuring_gives_a_time_for_every_size_and_tells_how_far_it_is(void **state) {
  (void)state;
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 7, .context = 40, .eos = -1}, &pair, &err));
  int last = 0;
  dtl_cost_measuring how = {.progress = count, .user = &last};
  dtl_costs c;
  dt_error err = {0};
  if (dtl_measure_costs(pair, &how, &c, &err)) fail_msg("%s", err.message);
  assert_int_equal(last, -1);
  assert_int_equal(c.n_contexts, 1);
  assert_true(c.drafts);
  for (int i = 0; i < c.n_rows; i++) {
    assert_true(c.target[0][i] > (i ? c.target[0][i - 1] : 0));
    assert_true(c.draft[0][i] > (i ? c.draft[0][i - 1] : 0));
  }
  assert_true(c.first[0] >= c.draft[0][0]);
  assert_true(c.read > 0 && c.read < 10 * c.draft[0][0]);
  assert_true(c.target_sample >= 0 && c.draft_sample >= 0);
  assert_true(c.experts[0] == 0 && c.expert[0] == 0);
  assert_true(c.cache_miss[0] > 0 && c.cache_miss[1] >= c.cache_miss[0] && c.cache_miss[2] >= c.cache_miss[1] &&
              c.cache_miss[2] < 10);
  dt_pair_close(pair);
}

static void where_no_terminal_is_progress_is_a_line_every_ten_seconds(void **state) {
  (void)state;
  FILE *file = tmpfile();
  int terminal = dup(STDERR_FILENO);
  dtl_cost_measuring how = dtl_cost_measuring_shown(NULL);
  double *shown_ms = how.user;
  assert_true(file && terminal >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
  how.progress(how.user, 1, 8);
  *shown_ms -= 9.9e3;
  how.progress(how.user, 2, 8);
  *shown_ms -= 0.1e3;
  how.progress(how.user, 3, 8);
  how.progress(how.user, 4, 8);
  *shown_ms -= 10e3;
  how.progress(how.user, 8, 8);
  dup2(terminal, STDERR_FILENO);
  char text[200] = "";
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  assert_string_equal(text, "dtrun: measuring the cost of passes: 37 %\n");
  fclose(file), close(terminal);
}

static void measuring_counts_experts_and_estimates_their_cost(void **state) {
  (void)state;
  for (int room = 0; room < 2; room++) { /* without room no chain of equal rows fits */
    dt_pair *pair;
    dt_fake_options options = {
        .vocab = 300, .context = room ? 40 : 3, .eos = -1, .layers = 3, .experts = 64, .chosen = 4};
    ok(dt_pair_open_fake(&options, &pair, &err));
    dtl_costs c;
    dt_error why = {0};
    if (dtl_measure_costs(pair, &(dtl_cost_measuring){.batch = 1}, &c, &why)) fail_msg("%s", why.message);
    assert_true(c.experts[0] == 12);
    for (int i = 1; i < c.n_rows; i++) {
      double all = c.rows[i] < 16 ? 12 * c.rows[i] : 3 * 64;
      assert_true(c.experts[i] >= c.experts[i - 1] && c.experts[i] <= all);
      assert_true(c.expert[i] >= 0 && c.expert[i] * c.experts[i] <= c.target[0][i] * (1 + 1e-12));
    }
    assert_true(c.experts[1] > 16); /* different rows */
    assert_null(costs_wrong(&c));
    dt_pair_close(pair);
  }
}

static int asked;
/* Every second answer says that nothing was computed in between. */
static dtl_usage usage_of_a_busy_machine(bool children) {
  (void)children;
  return (dtl_usage){.wall_ms = 1000.0 * asked++, .switches = 1000L * asked};
}
static dtl_usage usage_busy_at_first(bool children) {
  dtl_usage usage = usage_of_a_busy_machine(children);
  if (asked > 2) usage.switches = 0;
  return usage;
}

static char noted[300];
static void keep_note(void *user, const char *line) {
  (void)user;
  snprintf(noted, sizeof noted, "%s", line);
}

static void a_disturbed_table_is_measured_again_and_reported_if_that_does_not_help(void **state) {
  (void)state;
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 7, .context = 40, .eos = -1}, &pair, &err));
  dtl_cost_measuring how = {.usage = usage_of_a_busy_machine, .note = keep_note};
  dtl_costs c;
  dt_error why = {0};
  asked = 0;
  assert_int_equal(dtl_measure_costs(pair, &how, &c, &why), DT_OK);
  assert_int_equal(asked, 4);
  assert_true(c.disturbed);
  assert_string_equal(noted,
                      "the machine was busy in all 2 measurements of costs (it was preempted 1000 times in "
                      "1.00 s): the table is valid for ten minutes; measure again with 'dtrun run costs --fresh'");
  asked = 0, *noted = '\0';
  how.usage = usage_busy_at_first;
  assert_int_equal(dtl_measure_costs(pair, &how, &c, &why), DT_OK);
  assert_int_equal(asked, 4);
  dt_pair_close(pair);
}

static void a_disturbed_table_serves_ten_minutes(void **state) {
  (void)state;
  char *folder = temp_folder(), path[300];
  snprintf(path, sizeof path, "%s/costs.json", folder);
  costs_place place = {.key = "this machine", .path = path};
  dtl_costs c = parsed(TABLE), back;
  for (int busy = 0; busy < 2; busy++) {
    c.disturbed = busy;
    assert_null(costs_store(&place, &c));
    assert_null(costs_load(&place, &back));
    assert_int_equal(back.disturbed, busy);
    struct timespec ages[] = {{.tv_sec = time(NULL) - 590}, {.tv_sec = time(NULL) - 601}};
    for (int old = 0; old < 2; old++) {
      struct timespec times[2] = {ages[old], ages[old]};
      if (utimensat(AT_FDCWD, path, times, 0)) fail_msg("utimensat");
      const char *wrong = costs_load(&place, &back);
      if (busy && old)
        assert_string_equal(wrong, "the machine was busy when it was measured");
      else
        assert_null(wrong);
    }
  }
  temp_remove(folder);
}

static void measuring_can_be_interrupted_and_fails_with_what_the_engine_says(void **state) {
  (void)state;
  dt_pair *pair;
  const int32_t id = 0;
  const float nan = 0.0f / 0.0f;
  dt_fake_rule broken = {.token = &id, .p = &nan, .count = 1};
  dt_fake_options options = {.vocab = 7, .context = 40, .eos = -1, .target = &broken, .n_target = 1};
  ok(dt_pair_open_fake(&options, &pair, &err));
  volatile sig_atomic_t interrupt = 1;
  dtl_cost_measuring how = {.interrupt = &interrupt};
  dtl_costs c;
  dt_error err = {0};
  assert_int_not_equal(dtl_measure_costs(pair, &how, &c, &err), DT_OK);
  assert_string_equal(err.message, "interrupted");
  interrupt = 0;
  assert_int_not_equal(dtl_measure_costs(pair, &how, &c, &err), DT_OK);
  assert_int_equal(err.status, DT_EDEVICE);
  assert_non_null(strstr(err.message, "returned NaN"));
  how.context = 2;
  assert_int_not_equal(dtl_measure_costs(pair, &how, &c, &err), DT_OK);
  assert_string_equal(err.message, "a context of 2 tokens is too short to measure costs");
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(between_measured_rows_and_contexts_costs_are_straight_lines),
      cmocka_unit_test(the_first_draft_pass_costs_so_much_more_than_another),
      cmocka_unit_test(fewer_sequences_than_measured_are_parts_of_a_row),
      cmocka_unit_test(a_pass_takes_longer_by_the_experts_that_it_reads),
      cmocka_unit_test(the_cost_of_an_expert_is_estimated_from_passes_that_read_more_and_fewer),
      cmocka_unit_test(a_miss_takes_longer_the_more_passes_are_between),
      cmocka_unit_test(a_context_counts_as_the_next_multiple_of_128),
      cmocka_unit_test(disturbed_times_become_strictly_increasing_from_below),
      cmocka_unit_test(a_table_that_is_none_is_refused_with_the_reason),
      cmocka_unit_test(the_least_and_the_largest_time_and_batch_are_taken),
      cmocka_unit_test(what_is_kept_is_served_to_its_key_alone),
      cmocka_unit_test(a_table_of_an_older_version_is_refused_for_its_key),
      cmocka_unit_test(a_damaged_file_says_so_and_is_written_anew),
      cmocka_unit_test(where_nothing_can_be_written_the_reason_is_told_and_nothing_left),
      cmocka_unit_test(the_key_changes_with_threads_context_and_the_models_files),
      cmocka_unit_test(several_sequences_are_measured_together),
      cmocka_unit_test(measuring_gives_a_time_for_every_size_and_tells_how_far_it_is),
      cmocka_unit_test(where_no_terminal_is_progress_is_a_line_every_ten_seconds),
      cmocka_unit_test(measuring_counts_experts_and_estimates_their_cost),
      cmocka_unit_test(a_disturbed_table_is_measured_again_and_reported_if_that_does_not_help),
      cmocka_unit_test(a_disturbed_table_serves_ten_minutes),
      cmocka_unit_test(measuring_can_be_interrupted_and_fails_with_what_the_engine_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
