/* A target on several backends. Here all are the CPU, so that the bits are those of the whole model, wherever it is
 * cut; test_cuda_split and tests/cli/cuda.sh split a target between the CPU and the emulated device. */
#include "cpu.h"
#include "random_parts.h"
#include "split/split.h"
#include "split_text.h"

static rig open_split(const dt_model_desc *desc, int device_layers, int devices) {
  dt_model_desc target = *desc;
  target.path = "a target"; /* a draft is not split */
  return rig_open_with(
      &dt_split_ops,
      (dt_backend_options){
          .threads = 2, .host = &dt_cpu_ops, .device = &dt_cpu_ops, .device_layers = device_layers, .devices = devices},
      &target, 2, SPLIT_SLOTS);
}

static void compare(random_model *m) {
  rig whole = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 2, SPLIT_SLOTS);
  float *expected = generate(&whole);
  const size_t bytes = sizeof *expected * 6 * (size_t)whole.vocab;
  size_t len, of;
  void *slot = rig_slot(&whole, 1, TEXT + 3, &len);
  for (int layers = 1; layers <= m->desc.shape.layers + 1; layers++)
    for (int devices = 1; devices <= 3; devices++) {
      rig r = open_split(&m->desc, layers, devices);
      float *found = generate(&r);
      void *same = rig_slot(&r, 1, TEXT + 3, &of);
      assert_memory_equal(found, expected, bytes);
      assert_int_equal(of, len);
      assert_memory_equal(same, slot, len);
      free(found), free(same);
      rig_close(&r);
    }
  free(expected), free(slot);
  rig_close(&whole);
}

static random_model *with_layers(int shape, int layers) {
  model_shape s = random_shapes[shape];
  s.layers = layers;
  return random_model_new(&s, 3);
}

static void wherever_it_is_cut_the_bits_are_those_of_the_whole(void **state) {
  (void)state;
  const int shapes[] = {0, 1, 5, 7}; /* one is quantized */
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    random_model *m = with_layers(shapes[i], RANDOM_LAYERS);
    compare(m);
    random_model_free(m);
  }
  for (int part = 0; part < RANDOM_PARTS; part++) {
    if (part == 2) continue; /* Gemma 4: refused below */
    random_model *m = random_parts_new(part, 3);
    compare(m);
    random_model_free(m);
  }
}

static void delta_layers_may_be_on_both_sides(void **state) {
  (void)state;
  random_model *m = with_layers(5, RANDOM_LAYERS);
  random_delta(m, 32, 48, false);
  compare(m);
  random_model_free(m);
}

/* More devices than layers, and the most that are possible. */
static void some_devices_may_have_no_layer(void **state) {
  (void)state;
  random_model *m = with_layers(1, 2);
  rig whole = rig_open(&dt_cpu_ops, NULL, 2, &m->desc, 2, SPLIT_SLOTS), r = open_split(&m->desc, 99, SPLIT_DEVICES);
  float *expected = generate(&whole), *found = generate(&r);
  assert_memory_equal(found, expected, sizeof *found * 6 * (size_t)whole.vocab);
  free(expected), free(found);
  rig_close(&whole), rig_close(&r);
  ok(split_check_devices(SPLIT_DEVICES, &err));
  fails(split_check_devices(SPLIT_DEVICES + 1, &err), DT_EINPUT, "gpus: 17 is out of range: 1..16");
  random_model_free(m);
}

static void keys_that_a_layer_reads_stay_with_it(void **state) {
  (void)state;
  random_model *m = with_layers(5, RANDOM_LAYERS);
  random_sizes(m, &m->layer[3], 0, 0, 0, 3);
  m->desc.path = "a target";
  dt_backend *b;
  dt_weights *w;
  for (int layers = 1; layers <= RANDOM_LAYERS; layers++) {
    ok(dt_split_ops.open(
        &(dt_backend_options){.threads = 1, .host = &dt_cpu_ops, .device = &dt_cpu_ops, .device_layers = layers}, &b,
        &err));
    if (layers == 1) {
      fails(dt_split_ops.upload(b, &m->desc, &(dt_holding){0}, &w, &err), DT_EINPUT,
            "gpu_layers: layer 4 reads the keys of layer 3, so that both must be on one backend: at most 0 layers or "
            "at least 2 on the GPU");
    } else {
      ok(dt_split_ops.upload(b, &m->desc, &(dt_holding){0}, &w, &err));
      dt_split_ops.free_weights(w);
    }
    dt_split_ops.close(b);
  }
  random_model_free(m);
}

static void models_with_inputs_are_refused(void **state) {
  (void)state;
  random_model *m = random_parts_new(2, 3);
  m->desc.path = "a target";
  dt_backend *b;
  dt_weights *w;
  ok(dt_split_ops.open(
      &(dt_backend_options){.threads = 1, .host = &dt_cpu_ops, .device = &dt_cpu_ops, .device_layers = 1}, &b, &err));
  fails(dt_split_ops.upload(b, &m->desc, &(dt_holding){0}, &w, &err), DT_EINPUT,
        "gpu_layers: each layer of this model reads inputs of its own");
  dt_split_ops.close(b);
  random_model_free(m);
}

static void a_part_needs_the_stream_of_the_other(void **state) {
  (void)state;
  random_model *m = with_layers(1, 2);
  static float stream[100];
  row_list l = {0};
  row_add_plain(&l, 0, 1, 0);
  for (int part = 0; part < 4; part++) {
    m->desc.part = (dt_part){.leaves = part & 1, .enters = part & 2};
    rig r = rig_open(&dt_cpu_ops, NULL, 1, &m->desc, 1, 9);
    for (int given = 0; given < 4; given++) {
      dt_rows rows = rows_of(&l);
      if (given & 1) rows.leaving = stream;
      if (given & 2) rows.entering = stream;
      if (given == part)
        ok(r.ops->forward(r.weights, r.cache, &rows, NULL, &err));
      else
        fails(r.ops->forward(r.weights, r.cache, &rows, NULL, &err), DT_EINPUT,
              "a stream enters the later parts of a model");
    }
    rig_close(&r);
  }
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wherever_it_is_cut_the_bits_are_those_of_the_whole),
      cmocka_unit_test(delta_layers_may_be_on_both_sides),
      cmocka_unit_test(some_devices_may_have_no_layer),
      cmocka_unit_test(keys_that_a_layer_reads_stay_with_it),
      cmocka_unit_test(models_with_inputs_are_refused),
      cmocka_unit_test(a_part_needs_the_stream_of_the_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
