/* Any bytes as a config.json. */
#include "fuzz.h"

#include "model/family.h"
#include "system/json_file.h"

#include <math.h>

static void check_rotation(const rotation *r, int dims) {
  float freq[256];
  if (dims > 512) return; /* larger ones take long, and are computed in the same way */
  rotation_fill(r, dims, freq);
  for (int j = 0; j < dims / 2; j++)
    if (!isfinite(freq[j]) || freq[j] < 0) abort();
}

static void check(const config *c) {
  const dt_shape *s = &c->shape;
  if (s->heads % s->kv_heads || s->rotary_dims < 0 || s->rotary_dims > s->head_dim || c->n_eos > CONFIG_MAX_EOS)
    abort();
  if (s->experts && (s->chosen < 1 || s->chosen > s->experts || s->experts > DT_EXPERTS || s->expert_inter < 1))
    abort();
  if (s->delta_value_heads &&
      (s->delta_key_heads < 1 || s->delta_value_heads % s->delta_key_heads || s->delta_key_dim < 16 ||
       s->delta_key_dim % 16 || s->delta_value_dim < 16 || s->delta_value_dim % 16))
    abort();
  if (c->further < 0 || s->layers < 1 || s->inter < 1) abort();
  if (s->heads > CONFIG_MAX_SIZE / s->head_dim || s->inputs > CONFIG_MAX_SIZE / s->layers) abort();
  if (c->window < 0 || s->window < 0 || (s->window && s->context > s->window)) abort();
  const float numbers[] = {s->norm_eps,        s->embed_scale, s->residual_scale, s->logit_scale,
                           s->attention_scale, s->score_cap,   s->logit_cap};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!isfinite(numbers[i]) || numbers[i] < 0) abort();
  check_rotation(&c->rotation, s->rotary_dims);
  if (c->two_rotations) check_rotation(&c->local_rotation, s->local_dims ? s->local_dims : s->rotary_dims);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const char *path = fuzz_file(bytes, size);
  config c = {0};
  cJSON *json = NULL;
  const family *kin;
  dt_error err;
  dt_status status = json_read_object(path, &json, &err);
  keys k = {.path = path, .json = json, .err = &err};
  if (!status) status = family_find(&k, &kin);
  if (!status) status = kin->read(&k, &c);
  if (status)
    fuzz_check_failure(status, &err, path);
  else
    check(&c);
  cJSON_Delete(json);
  return 0;
}
