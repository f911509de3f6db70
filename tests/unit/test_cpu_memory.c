/* How much memory the CPU backend takes, and when. */
#include "cpu.h"
#include "random_model.h"
#include "resident.h"
#include "rig.h"

enum { SLOTS = 1 << 17 };

static void a_cache_takes_memory_as_its_text_grows(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[2], 3);
  dt_backend_options options = {.threads = 2, .cache_dtype = "f32"};
  rig r = rig_open_with(&dt_cpu_ops, options, &m->desc, 1, 1);
  size_t before = resident(), all = r.ops->cache_bytes(r.weights, SLOTS);
  r.ops->free_cache(r.cache);
  ok(r.ops->create_cache(r.weights, 1, SLOTS, &r.cache, &err));
  row_list l = {0};
  row_add_plain(&l, 0, 1, 0);
  free(rig_run(&r, &l, true));
  size_t taken = resident() - before;
  print_message("a cache of %zu MiB takes %zu MiB for one token\n", all >> 20, taken >> 20);
  assert_true(taken < all / 2);
  rig_close(&r);
  random_model_free(m);
}

static void what_does_not_fit_is_told_with_numbers(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[2], 3);
  rig r = rig_open(&dt_cpu_ops, NULL, 1, &m->desc, 1, 1);
  dt_cache *cache = NULL;
  size_t slot = r.ops->cache_bytes(r.weights, 1), free_now = r.ops->bytes_free(r.backend);
  if (free_now / slot < INT32_MAX / 2)
    fails(r.ops->create_cache(r.weights, 4, (int)(free_now / slot), &cache, &err), DT_ENOMEM,
          "out of memory: the cache needs ");
  rig_close(&r);
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cache_takes_memory_as_its_text_grows),
      cmocka_unit_test(what_does_not_fit_is_told_with_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
