/* A small tokenizer.json for tests to change and open: symbols for 256 bytes (ids = bytes), five tokens, four merges,
 * one added token. */
#ifndef SMALL_TOKENIZER_H
#define SMALL_TOKENIZER_H

#include "temp_files.h"
#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

static const char HEAD[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,"
    "\"added_tokens\":[{\"id\":261,\"content\":\"<|end|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
    "\"normalized\":false,\"special\":true}],"
    "\"normalizer\":{\"type\":\"NFC\"},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true},"
    "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true},"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
    "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"vocab\":{";
static const char TAIL[] = "\"ab\":256,\"abc\":257,\"aa\":258,\"\xC4\xA0"
                           "a\":259,\"bc\":260},"
                           "\"merges\":[\"a b\",\"ab c\",\"a a\",\"\xC4\xA0 a\"]}}";

/* The file's text with the first `from` replaced by `to` (unchanged if `to` is NULL). malloc'd. */
static inline char *small_json(const char *from, const char *to) {
  char *json = malloc(16384), *at = json;
  int next = 0x100;
  at = stpcpy(at, HEAD);
  for (int b = 0; b < 256; b++) {
    int c = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE ? b : next++;
    at += sprintf(at, "\"\\u%04x\":%d,", c, b);
  }
  strcpy(at, TAIL);
  if (!from) return json;
  char *place = strstr(json, from);
  assert_non_null(place);
  char *changed = malloc(strlen(json) + strlen(to) + 1);
  memcpy(changed, json, (size_t)(place - json));
  strcpy(stpcpy(changed + (place - json), to), place + strlen(from));
  free(json);
  return changed;
}

/* Checks that encoding is fast. With quadratic time a million bytes would take minutes; the limit leaves room for
 * sanitizers and a busy machine. */
static inline void expect_quick(const tok *t, const char *text, size_t n) {
  int32_t *ids = NULL;
  int n_ids;
  dt_error err;
  clock_t start = clock();
  assert_int_equal(tok_encode(t, text, n, false, &ids, &n_ids, &err), DT_OK);
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10.0);
  free(ids);
}

/* Opens n bytes as a tokenizer.json. err gets the message without the path and the ": " after it. */
static inline dt_status open_bytes(const char *bytes, size_t n, tok **t, dt_error *err) {
  char *folder = temp_folder(), path[256];
  snprintf(path, sizeof path, "%s/tokenizer.json", folder);
  temp_write(folder, "tokenizer.json", bytes, n);
  *t = NULL;
  *err = (dt_error){0};
  dt_status status = tok_open(path, t, err);
  if (status != DT_OK) {
    assert_null(*t);
    assert_int_equal(err->status, status);
    assert_int_equal(strncmp(err->message, path, strlen(path)), 0);
    assert_null(strchr(err->message, '\n'));
    memmove(err->message, err->message + strlen(path) + 2, strlen(err->message) - strlen(path) - 1);
  }
  temp_remove(folder);
  return status;
}

static inline tok *open_small(const char *from, const char *to) {
  char *json = small_json(from, to);
  tok *t;
  dt_error err;
  if (open_bytes(json, strlen(json), &t, &err) != DT_OK) fail_msg("%s", err.message);
  free(json);
  return t;
}

static inline bool same_ids(const tok *t, const char *text, size_t len, bool begin, const int32_t *expected,
                            int n_expected) {
  int32_t *ids = NULL;
  int n;
  dt_error err;
  assert_int_equal(tok_encode(t, text, len, begin, &ids, &n, &err), DT_OK);
  assert_non_null(ids);
  bool equal = n == n_expected && memcmp(ids, expected, (size_t)n * sizeof *ids) == 0;
  free(ids);
  return equal;
}

static inline void expect_ids_of(const tok *t, const char *text, size_t len, const int32_t *expected, int n_expected) {
  if (!same_ids(t, text, len, false, expected, n_expected)) fail_msg("wrong ids for \"%s\"", text);
}
#define EXPECT_IDS(t, text, ...)                                                                                       \
  expect_ids_of(t, text, sizeof(text) - 1, (const int32_t[]){__VA_ARGS__},                                             \
                (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

#endif
