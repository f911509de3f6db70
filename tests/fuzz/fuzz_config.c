/* Any bytes as a config.json. */
#include "fuzz.h"

#include "model/family.h"
#include "system/json_file.h"

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
  const dt_shape *s = &c.shape;
  if (status)
    fuzz_check_failure(status, &err, path);
  else if (s->heads % s->kv_heads || s->rotary_dims < 0 || s->rotary_dims > s->head_dim || c.n_eos > CONFIG_MAX_EOS)
    abort();
  cJSON_Delete(json);
  return 0;
}
