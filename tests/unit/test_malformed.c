/* Malformed checkpoints, of every family with more features than Llama. Each is a golden model with one thing changed.
 * Each is refused in one line that names the file and says what was found or what is expected.
 *
 *   test_malformed                 opens them
 *   test_malformed write FOLDER    writes them, for the command line: FOLDER/NUMBER/ or FOLDER/NUMBER.gguf, and
 *       FOLDER/NUMBER.says */
#include "gguf_edit.h"
#include "golden_logits.h"
#include "malformed.h"
#include "model/model.h"
#include "unit.h"

#include <sys/stat.h>

static bool is_tensor(const char *at) {
  return strstr(at, ".weight") || strstr(at, ".bias") || strstr(at, ".layers.") || strstr(at, "blk.");
}

/* Changes the tensor's row of golden.json: gives it another shape or type, or removes it. */
static void change_tensor(cJSON *tensors, const char *name, const char *value) {
  int i = 0;
  for (cJSON *t = tensors->child; t; t = t->next, i++) {
    if (strcmp(cJSON_GetArrayItem(t, 0)->valuestring, name)) continue;
    if (*value == '-') return cJSON_DeleteItemFromArray(tensors, i);
    cJSON_ReplaceItemInArray(t, *value == '[' ? 2 : 1, cJSON_Parse(value));
    return;
  }
  fail_msg("no tensor %s", name);
}

static void change_key(cJSON *config, const char *key, const char *value) {
  cJSON_DeleteItemFromObjectCaseSensitive(config, key);
  if (*value == '-' && !value[1]) return;
  cJSON *item = cJSON_Parse(value);
  if (!item) fail_msg("%s: %s is not valid JSON", key, value);
  cJSON_AddItemToObject(config, key, item);
}

/* Writes a model in Hugging Face's format. */
static void write_folder(const malformed *m, const char *to) {
  size_t size;
  char *text = golden_bytes(m->base, "golden.json", &size);
  cJSON *json = cJSON_Parse(text);
  if (is_tensor(m->at))
    change_tensor(cJSON_GetObjectItem(json, "tensors"), m->at, m->value);
  else if (m->at)
    change_key(cJSON_GetObjectItem(json, "config"), m->at, m->value);
  mkdir(to, 0777);
  formula_checkpoint(to, json);
  cJSON_Delete(json);
  free(text);
}

static void write_file(const malformed *m, const char *folder, const char *name) {
  gguf_file f = {0};
  char key[128];
  size_t len = 0;
  f.bytes = (unsigned char *)golden_bytes(m->base, "model.gguf", &f.size);
  gguf *g = NULL;
  ok(gguf_open_bytes("base", f.bytes, f.size, &g, &err));
  const char *arch = gguf_string(gguf_find(g, "general.architecture"), 0, &len);
  snprintf(key, sizeof key, "%.*s.%s", (int)len, arch, m->at);
  gguf_close(g);
  if (!is_tensor(m->at))
    edit_key(&f, strncmp(m->at, "general.", 8) ? key : m->at, m->value);
  else if (!(strncmp(m->value, "f32 ", 4) ? edit_tensor : edit_data)(&f, m->at, m->value))
    fail_msg("no tensor %s", m->at);
  temp_write(folder, name, f.bytes, f.size);
  free(f.bytes);
}

/* Writes a model into the folder, as NUMBER or NUMBER.gguf. Returns its path, in a static buffer. */
static const char *write_one(const malformed *m, const char *folder, int number) {
  static char path[512];
  bool file = !strncmp(m->base, "gguf_", 5);
  snprintf(path, sizeof path, "%s/%d%s", folder, number, file ? ".gguf" : "");
  if (file)
    write_file(m, folder, strrchr(path, '/') + 1);
  else
    write_folder(m, path);
  return path;
}

static void each_is_refused_in_one_line(void **state) {
  (void)state;
  char *folder = temp_folder();
  int wrong = 0;
  for (int i = 0; i < MALFORMED; i++) {
    const malformed *m = &malformed_models[i];
    const char *path = write_one(m, folder, i);
    model *opened = NULL;
    dt_error err = {0};
    dt_status status = model_open(path, &opened, &err);
    const char *says = err.message;
    bool right = status == DT_EINPUT && strstr(says, m->says) && strstr(says, path) && !strchr(says, '\n') &&
                 (strstr(says, "expected") || strstr(says, "supported") || strstr(says, "missing"));
    if (!right) print_error("%s, %s = %s: %s\n", m->base, m->at, m->value, status ? says : "it was accepted");
    wrong += !right;
    model_close(opened);
  }
  temp_remove(folder);
  assert_int_equal(wrong, 0);
}

/* Without the change each model is accepted, so it is the change that is refused. */
static void their_bases_are_accepted(void **state) {
  (void)state;
  for (int i = 0; i < MALFORMED; i++) {
    if (i && !strcmp(malformed_models[i - 1].base, malformed_models[i].base)) continue;
    golden g = golden_read(malformed_models[i].base);
    model *m;
    ok(model_open(g.model, &m, &err));
    model_close(m);
    golden_free(&g);
  }
}

/* The next numbers are refused, and so are lists with one number more or less. */
static void values_at_their_bounds_are_accepted(void **state) {
  (void)state;
  static const malformed bounds[] = {{"gguf_gemma4", "rope_freqs.weight", "f32 1e-6", NULL},
                                     {"gguf_gemma4", "rope_freqs.weight", "f32 1e38", NULL},
                                     {"gguf_gemma2", "attention.head_count_kv", "u32s 1,1,1,1", NULL}};
  char *folder = temp_folder();
  for (int i = 0; i < (int)(sizeof bounds / sizeof *bounds); i++) {
    model *m;
    ok(model_open(write_one(&bounds[i], folder, i), &m, &err));
    model_close(m);
  }
  temp_remove(folder);
}

static void write_all(const char *folder) {
  for (int i = 0; i < MALFORMED; i++) {
    char name[32];
    write_one(&malformed_models[i], folder, i);
    snprintf(name, sizeof name, "%d.says", i);
    temp_write(folder, name, malformed_models[i].says, strlen(malformed_models[i].says));
  }
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "write")) return write_all(argv[2]), 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(their_bases_are_accepted),
                                     cmocka_unit_test(each_is_refused_in_one_line),
                                     cmocka_unit_test(values_at_their_bounds_are_accepted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
