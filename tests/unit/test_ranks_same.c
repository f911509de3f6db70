/* Ranks with copies of a model: one byte that is another one, wherever it lies, is told before anything is computed. */
#include "model/model.h"
#include "model/safetensors.h"
#include "ranks/call.h"
#include "temp_files.h"
#include "thread_ranks.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *const files[] = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"};
enum { FILES = sizeof files / sizeof *files };

typedef struct {
  const char *folder[MOST_RANKS]; /* each rank's copy */
  dt_status status[MOST_RANKS];
  char message[MOST_RANKS][512];
} trial;

static void load(dt_ranks *ranks, void *context) {
  trial *t = context;
  call_site site = {.ranks = ranks};
  model *m = NULL;
  dt_model_desc desc;
  dt_error e = {.status = DT_OK};
  int backend, weights;
  call open = {.kind = CALL_OPEN, .n = 1, .version = dt_version()};
  if (call_make(&site, &open, &backend, &e) || model_open(t->folder[ranks->rank], &m, &e)) abort();
  desc = *model_desc(m), desc.path = t->folder[ranks->rank];
  call c = {.kind = CALL_UPLOAD, .on = backend, .path = desc.path, .signature = call_signature(&desc)};
  if (!ranks->rank) c.desc = &desc;
  t->status[ranks->rank] = call_make(&site, &c, &weights, &e);
  snprintf(t->message[ranks->rank], 512, "%s", t->status[ranks->rank] ? e.message : "");
  if (!t->status[ranks->rank]) call_make(&site, &(call){.kind = CALL_FREE_WEIGHTS, .on = weights}, &weights, NULL);
  call_make(&site, &(call){.kind = CALL_CLOSE, .on = backend}, &backend, NULL);
  model_close(m);
  free(site.made);
}

static char *copy_model(void) {
  char *folder = temp_folder(), path[300];
  for (int i = 0; i < FILES; i++) {
    snprintf(path, sizeof path, SOURCE_DIR "/models/mini-target/%s", files[i]);
    FILE *file = fopen(path, "rb");
    if (!file) continue;
    fseek(file, 0, SEEK_END);
    size_t n = (size_t)ftell(file);
    char *bytes = malloc(n);
    rewind(file);
    assert_int_equal(fread(bytes, 1, n, file), n);
    temp_write(folder, files[i], bytes, n);
    free(bytes), fclose(file);
  }
  return folder;
}

static void flip(const char *folder, const char *name, uint64_t at) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r+b");
  fseek(file, (long)at, SEEK_SET);
  int byte = fgetc(file);
  fseek(file, (long)at, SEEK_SET);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void copies_that_are_the_same_are_taken(void **state) {
  (void)state;
  char *a = copy_model(), *b = copy_model();
  trial t = {.folder = {a, b, a}};
  run_ranks(3, load, &t);
  for (int i = 0; i < 3; i++) assert_string_equal(t.message[i], "");
  temp_remove(a), temp_remove(b);
}

static void told(trial *t, const char *what) {
  run_ranks(2, load, t);
  for (int i = 0; i < 2; i++) {
    if (!strstr(t->message[i], what) || !strstr(t->message[i], "rank 1 on ")) fail_msg("%s: %s", what, t->message[i]);
    assert_int_equal(t->status[i], DT_EINPUT);
  }
}

/* The first, the middle and the last byte of each tensor, in the copy of either rank by turns. */
static void a_byte_of_any_tensor_is_told(void **state) {
  (void)state;
  char *copy[] = {copy_model(), copy_model()};
  st *s;
  int tensors = 0;
  ok(st_open_folder(copy[0], &s, &err));
  char path[300];
  struct stat info;
  snprintf(path, sizeof path, "%s/model.safetensors", copy[0]);
  assert_int_equal(stat(path, &info), 0);
  for (uint64_t at = 0, size = (uint64_t)info.st_size; at < size;) {
    const char *name = st_tensor_at(s, path, at);
    if (!name) {
      at++;
      continue;
    }
    const st_tensor *tensor = st_find(s, name);
    const uint64_t place[] = {0, tensor->size / 2, tensor->size - 1};
    for (int i = 0; i < 3; i++) {
      const char *bad = copy[(tensors + i) % 2];
      flip(bad, "model.safetensors", tensor->offset + place[i]);
      told(&(trial){.folder = {copy[0], copy[1]}}, name);
      flip(bad, "model.safetensors", tensor->offset + place[i]);
    }
    tensors++;
    at = tensor->offset + tensor->size;
  }
  assert_true(tensors > 10);
  st_close(s);
  temp_remove(copy[0]), temp_remove(copy[1]);
}

/* "1" and "0" are digits both: the file stays what it can be read as. */
static void a_byte_of_configuration_and_tokenizer_is_told(void **state) {
  (void)state;
  char *copy[] = {copy_model(), copy_model()};
  FILE *more = NULL;
  char path[300];
  for (int i = 0; i < FILES; i++) {
    if (!strcmp(files[i], "model.safetensors")) continue;
    snprintf(path, sizeof path, "%s/%s", copy[1], files[i]);
    bool there = !access(path, F_OK);
    more = fopen(path, "ab");
    fputs(there ? "\n" : "{}", more), fclose(more);
    told(&(trial){.folder = {copy[0], copy[1]}}, files[i]);
    snprintf(path, sizeof path, "%s/%s", copy[0], files[i]);
    more = fopen(path, "ab");
    fputs(there ? "\n" : "{}", more), fclose(more);
  }
  temp_remove(copy[0]), temp_remove(copy[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(copies_that_are_the_same_are_taken),
                                     cmocka_unit_test(a_byte_of_any_tensor_is_told),
                                     cmocka_unit_test(a_byte_of_configuration_and_tokenizer_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
