/* The golden file of small tokenizers, tests/golden/tokenizer/kinds.json, and the tokenizers in the same folder. */
#ifndef TOKENIZER_GOLDEN_H
#define TOKENIZER_GOLDEN_H

#include "small_tokenizer.h"

#include <cjson/cJSON.h>

#define GOLDEN SOURCE_DIR "/tests/golden/tokenizer/"

static inline cJSON *read_golden(const char *name) {
  char path[512];
  snprintf(path, sizeof path, GOLDEN "%s.json", name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  static char text[1 << 20];
  size_t n = fread(text, 1, sizeof text, f);
  fclose(f);
  cJSON *json = cJSON_ParseWithLength(text, n);
  assert_non_null(json);
  return json;
}

static inline tok *open_kind(const char *name) {
  char path[512];
  tok *t = NULL;
  dt_error err;
  snprintf(path, sizeof path, GOLDEN "kinds/%s.json", name);
  if (tok_open(path, &t, &err) != DT_OK) fail_msg("%s", err.message);
  return t;
}

static inline int golden_ids(const cJSON *list, int32_t *ids) {
  int n = 0;
  const cJSON *id;
  cJSON_ArrayForEach(id, list) ids[n++] = id->valueint;
  return n;
}

/* Finds the kind of this name in the file. Returns its index in the lists of every case, and the ids that begin every
 * text. */
static inline int golden_kind(const cJSON *golden, const char *name, int32_t *begin, int *n_begin) {
  const cJSON *kind;
  int entry = 0;
  cJSON_ArrayForEach(kind, cJSON_GetObjectItem(golden, "kinds")) {
    entry++;
    if (strcmp(cJSON_GetObjectItem(kind, "name")->valuestring, name) != 0) continue;
    *n_begin = golden_ids(cJSON_GetObjectItem(kind, "begin"), begin);
    return entry;
  }
  fail_msg("kinds.json has no kind %s", name);
  return 0;
}

/* Checks that t gives the ids of the kind for every case, with and without the ids that begin a text. */
static inline void expect_golden_ids(const tok *t, const cJSON *golden, const char *name) {
  static int32_t ids[4096];
  const cJSON *c;
  int n_begin = 0, count = 0, entry = golden_kind(golden, name, ids, &n_begin);
  int32_t *plain = ids + n_begin;
  cJSON_ArrayForEach(c, cJSON_GetObjectItem(golden, "cases")) {
    const char *text = cJSON_GetArrayItem(c, 0)->valuestring;
    const cJSON *expected = cJSON_GetArrayItem(c, entry);
    int n = golden_ids(cJSON_IsArray(expected) ? expected : cJSON_GetObjectItem(expected, "ids"), plain);
    if (!same_ids(t, text, strlen(text), false, plain, n)) fail_msg("%s: wrong ids for \"%s\"", name, text);
    bool begun = n >= n_begin && memcmp(ids, plain, (size_t)n_begin * sizeof *ids) == 0;
    assert_true(same_ids(t, text, strlen(text), true, begun ? plain : ids, begun ? n : n_begin + n));
    count++;
  }
  assert_true(count > 250);
}

#endif
