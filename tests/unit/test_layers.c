/* What a layer has of its own (sizes, the keys of another layer, inputs) must fit the model. A backend that does not
 * support such a part names it. */
#include "backend/check.h"
#include "random_parts.h"

static void layers_that_fit_are_taken(void **state) {
  (void)state;
  random_model *m = random_gemma4(DT_BF16, 1);
  ok(check_model(&m->desc, &err));
  const dt_shape own = dt_shape_of(&m->desc.shape, &m->layer[2]), all = dt_shape_of(&m->desc.shape, &m->layer[1]);
  assert_true(own.kv_heads == 1 && own.head_dim == 24 && own.inter == 33 && own.rotary_dims == 24);
  assert_true(all.kv_heads == 3 && all.head_dim == 40 && all.inter == 70 && all.rotary_dims == 40);
  random_model_free(m);
}

static void layers_that_do_not_fit_are_refused(void **state) {
  (void)state;
  random_model *m = random_gemma4(DT_BF16, 1);
  dt_layer *l = m->layer;
  dt_shape *s = &m->desc.shape;
#define WITH(place, value, part)                                                                                       \
  do {                                                                                                                 \
    __typeof__(place) before = place;                                                                                  \
    place = value;                                                                                                     \
    fails(check_model(&m->desc, &err), DT_EINPUT, part);                                                               \
    place = before;                                                                                                    \
  } while (0)
  WITH(l[0].kv_heads, -1, "layer 0: more heads or numbers than the shape has");
  WITH(l[0].kv_heads, 9, "layer 0: more heads or numbers than the shape has");
  WITH(l[0].head_dim, 41, "layer 0: more heads or numbers than the shape has");
  WITH(l[0].inter, 71, "layer 0: more heads or numbers than the shape has");
  WITH(l[0].kv_heads, 2, "9 heads cannot share 2 key heads");
  WITH(l[0].head_dim, 22, "24 rotary dimensions, expected an even number up to 22");
  WITH(l[0].head_dim, 26, "layer 0: q is");
  WITH(l[1].keys_of, 2, "layer 1: it cannot read the keys of layer 1");
  WITH(l[1].keys_of, -1, "layer 1: it cannot read the keys of layer -2");
  WITH(l[3].keys_of, 3, "layer 3: it cannot read the keys of layer 2"); /* that layer has no keys of its own */
  WITH(l[3].keys_of, 1, "layer 3: the keys of layer 0 have another shape");
  WITH(l[3].k, l[1].k, "layer 3: it has keys or values, although it reads those of layer 1");
  WITH(l[3].keys_of, 0, "layer 3: norms of queries and keys, expected both or none");
  WITH(l[1].k_norm, (dt_matrix){0}, "layer 1: norms of queries and keys, expected both or none");
  WITH(l[1].input_gate, (dt_matrix){0}, "layer 1: no input gate");
  WITH(l[1].scale, l[1].input_norm, "layer 1: scale is 100 x 1, expected 1 x 1");
  WITH(s->inputs, 0, "embedding of inputs is 331 x 80, expected 331 x 0");
  WITH(s->inputs, -1, "-1 inputs of a layer");
  WITH(s->inputs, 1 << 22, "embedding of inputs is");  /* four layers together have the maximum, */
  WITH(s->inputs, (1 << 22) + 1, "inputs of a layer"); /* or one more */
  WITH(s->local_dims, -2, "-2 rotary dimensions of one with a window");
  WITH(s->parallel_residual, true, "layer 0: norms after a parallel residual");
  WITH(m->desc.inputs_norm, (dt_matrix){0}, "no norm of inputs");
  random_model_free(m);
}

/* A plain model with one additional part. */
static void what_a_backend_lacks_is_named(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[5], 2);
  dt_layer *l = &m->layer[1];
  dt_shape *s = &m->desc.shape;
  ok(check_plain(&m->desc, "a GPU", &err));
#define NAMED(place, value, part)                                                                                      \
  do {                                                                                                                 \
    __typeof__(place) before = place;                                                                                  \
    place = value;                                                                                                     \
    fails(check_plain(&m->desc, "a GPU", &err), DT_EINPUT,                                                             \
          "model: it has " part ", which a GPU does not compute (--backend cpu does)");                                \
    place = before;                                                                                                    \
  } while (0)
  NAMED(l->scale, l->norm1, "scales of its layers, but no norms after them");
  s->normed_values = true;
  NAMED(l->q_norm, (dt_matrix){0}, "norms of values, but none of queries");
  random_model_free(m);
  m = random_gemma4(DT_BF16, 1);
  ok(check_plain(&m->desc, "a GPU", &err));
  random_model_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_that_fit_are_taken),
                                     cmocka_unit_test(layers_that_do_not_fit_are_refused),
                                     cmocka_unit_test(what_a_backend_lacks_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
