/* Texts of a pair as token ids: see dtrun.h. */
#include "pair/pair.h"
#include "system/need.h"

#include <stdlib.h>
#include <string.h>

/* Encodes a scripted pair's text: ids in decimal, separated by blanks. */
static dt_status encode_ids(const dt_pair *p, const char *text, size_t len, int32_t **ids, int *n, dt_error *err) {
  char *copy = strndup(text, len), *at = copy, *end;
  int32_t *list = malloc((len / 2 + 1) * sizeof *list);
  dt_status s = copy && list ? DT_OK : dt_fail_memory(err, "a prompt", len);
  for (*n = 0; !s && *(at += strspn(at, " \n")); at = end) {
    long id = strtol(at, &end, 10);
    if (end == at || id < 0 || id >= p->target_info.vocab)
      s = dt_fail(err, DT_EINPUT, "a scripted pair reads ids 0..%d, not '%.20s'", p->target_info.vocab - 1, at);
    else
      list[(*n)++] = (int32_t)id;
  }
  free(copy);
  if (s)
    free(list);
  else
    *ids = list;
  return s;
}

/* A tokenizer may have more ids than the model has rows. */
static dt_status check_rows(const dt_pair *p, const int32_t *ids, int n, dt_error *err) {
  for (int i = 0; i < n; i++)
    if (ids[i] >= p->target_info.vocab) {
      size_t len;
      const char *bytes = tok_bytes(p->tokenizer, ids[i], false, &len);
      return dt_fail(err, DT_EINPUT, "the text has token %d, '%.*s', but the vocabulary of %s has only %d", ids[i],
                     (int)len, bytes, p->target_path, p->target_info.vocab);
    }
  return DT_OK;
}

static dt_status encode(const dt_pair *p, const char *text, size_t len, bool begin, int32_t **ids, int *n,
                        dt_error *err) {
  NEED(p, "pair");
  NEED_TEXT(text, len, "text");
  NEED(ids, "ids");
  NEED(n, "n");
  if (!text) text = "";
  if (!p->tokenizer) return encode_ids(p, text, len, ids, n, err);
  dt_status s = tok_encode(p->tokenizer, text, len, begin, ids, n, err);
  if (!s && (s = check_rows(p, *ids, *n, err))) free(*ids);
  return s;
}

dt_status dt_encode(const dt_pair *p, const char *text, size_t len, int32_t **ids, int *n, dt_error *err) {
  return encode(p, text, len, true, ids, n, err);
}

dt_status dt_encode_whole(const dt_pair *p, const char *text, size_t len, int32_t **ids, int *n, dt_error *err) {
  return encode(p, text, len, false, ids, n, err);
}

dt_status dt_encode_chat(const dt_pair *p, const dt_chat_prompt *prompt, int32_t **ids, int *n, dt_error *err) {
  NEED(p, "pair");
  NEED(prompt, "prompt");
  NEED(ids, "ids");
  NEED(n, "n");
  if (!p->tokenizer || !prompt->n_plain) return encode(p, prompt->text, prompt->len, false, ids, n, err);
  dt_status s = tok_encode_plain(p->tokenizer, prompt->text, prompt->len, prompt->plain, prompt->n_plain, ids, n, err);
  if (!s && (s = check_rows(p, *ids, *n, err))) free(*ids);
  return s;
}

bool dt_pair_infill(const dt_pair *p, dt_infill *marks) {
  dt_infill found = {-1, -1, -1, -1, -1, -1};
  if (p && p->tokenizer) tok_infill(p->tokenizer, &found);
  int32_t *const ids[] = {&found.prefix, &found.suffix, &found.middle, &found.pad, &found.repo, &found.file};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    if (p && *ids[i] >= p->target_info.vocab) *ids[i] = -1; /* the tokenizer has more tokens than the model */
  if (marks) *marks = found;
  return found.prefix >= 0 && found.suffix >= 0 && found.middle >= 0;
}

dt_status dt_pair_chat(const dt_pair *p, const char *name, dt_chat **out, dt_error *err) {
  NEED(p, "pair");
  return dt_model_chat(p->target_info.path, name, out, err);
}
