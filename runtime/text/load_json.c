/* tok_open: reads and checks a tokenizer.json. It refuses, by name, all settings that would change the ids and are not
 * supported. So a tokenizer that opens encodes as Hugging Face does. */
#include "text/load_json.h"

#include "system/json_file.h"
#include "text/ends.h"
#include "text/infill_marks.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks a key or value of the file that becomes a token's string. */
static dt_status check_utf8(const json_loader *l, const char *string) {
  size_t len = strlen(string), valid = utf8_valid_prefix(string, len);
  if (valid == len) return DT_OK;
  return dt_fail(l->err, DT_EINPUT, "%s: a token's string is not UTF-8 at its byte %zu: JSON is UTF-8", l->path, valid);
}

typedef struct {
  int size; /* 1 + the largest id */
  size_t strings, bytes;
} extent;

static dt_status measure(const json_loader *l, const char *string, const cJSON *number, extent *e) {
  int32_t id;
  dt_status status = check_utf8(l, string);
  if (status == DT_OK) status = json_id(l, number, string, &id);
  if (status != DT_OK) return status;
  if (id >= e->size) e->size = id + 1;
  e->strings++;
  e->bytes += strlen(string);
  return DT_OK;
}

static dt_status measure_strings(const json_loader *l, const cJSON *vocabulary, const cJSON *added, extent *e) {
  const cJSON *v;
  cJSON_ArrayForEach(v, vocabulary) {
    dt_status status = measure(l, v->string, v, e);
    if (status != DT_OK) return status;
  }
  cJSON_ArrayForEach(v, added) {
    const cJSON *content = json_get(v, "content");
    if (!cJSON_IsString(content) || content->valuestring[0] == '\0')
      return json_unsupported(l, "added_tokens: content", content, "a string of at least one character");
    dt_status status = measure(l, content->valuestring, json_get(v, "id"), e);
    if (status != DT_OK) return status;
  }
  return DT_OK;
}

/* Records a string under its id. An added token may be in the vocabulary too; then both must agree. */
static dt_status file_string(json_loader *l, const char *string, int32_t id, int of) {
  vocab *v = &l->t->strings;
  char text[64], other[64];
  size_t len = strlen(string);
  int32_t known = vocab_find(v, string, len, "", 0);
  if (known >= 0 && (of == VOCAB_MODEL || v->entry[known].of & VOCAB_ADDED))
    return dt_fail(l->err, DT_EINPUT, "%s: %s lists \"%s\" twice: a token has one id", l->path,
                   of == VOCAB_MODEL ? "model.vocab" : "added_tokens", json_shown(string, text));
  if (known >= 0 && known != id)
    return dt_fail(l->err, DT_EINPUT, "%s: \"%s\" has id %d in model.vocab and %d in added_tokens: they must be equal",
                   l->path, json_shown(string, text), (int)known, (int)id);
  if (known >= 0) {
    v->entry[id].of |= of;
    return DT_OK;
  }
  if (v->entry[id].of) {
    size_t other_len;
    const char *taken = vocab_string(v, id, &other_len);
    char *copy = strndup(taken, other_len);
    if (!copy) return dt_fail_memory(l->err, "a token's string", other_len);
    dt_status status =
        dt_fail(l->err, DT_EINPUT, "%s: \"%s\" and \"%s\" have the same id %d: an id stands for one token", l->path,
                json_shown(copy, other), json_shown(string, text), (int)id);
    free(copy);
    return status;
  }
  vocab_put(v, id, string, len, of);
  return DT_OK;
}

/* Names the file in the message of a step that failed because of its size. */
static dt_status blame_file(json_loader *l, dt_status status) {
  if (status != DT_EINPUT) return status;
  dt_error said = *l->err;
  return dt_fail(l->err, status, "%s: %s", l->path, said.message);
}

static dt_status load_added_token(json_loader *l, const cJSON *json) {
  const char *content = json_get(json, "content")->valuestring;
  added_token token = {.id = -1};
  dt_status status = json_id(l, json_get(json, "id"), content, &token.id);
  if (status == DT_OK) status = file_string(l, content, token.id, VOCAB_ADDED);
  if (status == DT_OK) status = json_flag(l, json, "single_word", &token.single_word);
  if (status == DT_OK) status = json_flag(l, json, "lstrip", &token.lstrip);
  if (status == DT_OK) status = json_flag(l, json, "rstrip", &token.rstrip);
  if (status == DT_OK) status = json_flag(l, json, "special", &token.control);
  bool normalized = !token.control;
  if (status == DT_OK) status = json_flag(l, json, "normalized", &normalized);
  if (status != DT_OK) return status;

  size_t len = strlen(content);
  if (!normalized) return added_insert(&l->t->raw, content, len, token, l->err);
  char *changed;
  status = blame_file(l, normalize_text(l->t->normalize, l->t->n_normalize, content, len, &changed, &len, l->err));
  if (status == DT_OK && len > 0)
    status = added_insert(&l->t->normalized, changed ? changed : content, len, token, l->err);
  free(changed);
  return status;
}

static dt_status load_strings(json_loader *l, const cJSON *vocabulary, const cJSON *added) {
  extent e = {0};
  dt_status status = measure_strings(l, vocabulary, added, &e);
  if (status == DT_OK) status = vocab_init(&l->t->strings, e.size, e.strings, e.bytes, l->err);
  if (status != DT_OK) return status;
  const cJSON *v;
  cJSON_ArrayForEach(v, vocabulary) {
    int32_t id;
    status = json_id(l, v, v->string, &id);
    if (status == DT_OK) status = file_string(l, v->string, id, VOCAB_MODEL);
    if (status != DT_OK) return status;
  }
  cJSON_ArrayForEach(v, added) {
    status = load_added_token(l, v);
    if (status != DT_OK) return status;
  }
  return DT_OK;
}

/* The two halves of a merge: "a b" or ["a", "b"]. */
static bool halves(const cJSON *merge, const char *half[2], size_t len[2]) {
  if (cJSON_IsString(merge)) {
    const char *space = strchr(merge->valuestring, ' ');
    if (!space || strchr(space + 1, ' ')) return false;
    half[0] = merge->valuestring;
    len[0] = (size_t)(space - half[0]);
    half[1] = space + 1;
    len[1] = strlen(half[1]);
  } else {
    const cJSON *first = cJSON_IsArray(merge) ? merge->child : NULL, *second = first ? first->next : NULL;
    if (!cJSON_IsString(first) || !cJSON_IsString(second) || second->next) return false;
    half[0] = first->valuestring;
    half[1] = second->valuestring;
    len[0] = strlen(half[0]);
    len[1] = strlen(half[1]);
  }
  return len[0] > 0 && len[1] > 0;
}

static dt_status load_merges(json_loader *l, const cJSON *merges) {
  const vocab *v = &l->t->strings;
  const cJSON *merge;
  int32_t rank = 0;
  dt_status status = bpe_init(&l->t->words.merges, (size_t)cJSON_GetArraySize(merges), l->err);
  if (status != DT_OK) return status;
  cJSON_ArrayForEach(merge, merges) {
    const char *half[2];
    size_t len[2];
    char text[96], left[64], right[64];
    if (!halves(merge, half, len))
      return dt_fail(l->err, DT_EINPUT, "%s: model.merges: merge %d is %s: it must be \"a b\" or [\"a\", \"b\"]",
                     l->path, (int)rank, json_described(merge, text));
    int32_t a = vocab_find(v, half[0], len[0], "", 0), b = vocab_find(v, half[1], len[1], "", 0),
            ab = vocab_find(v, half[0], len[0], half[1], len[1]);
    if (a < 0 || b < 0 || ab < 0) {
      char first[64];
      snprintf(first, sizeof first, "%.*s", (int)(len[0] < 63 ? len[0] : 63), half[0]);
      return dt_fail(l->err, DT_EINPUT, "%s: model.merges: merge %d joins \"%s\" and \"%s\": model.vocab lacks %s",
                     l->path, (int)rank, json_shown(first, left), json_shown(half[1], right),
                     a < 0   ? "the first"
                     : b < 0 ? "the second"
                             : "the two joined");
    }
    bpe_add_merge(&l->t->words.merges, a, b, rank++, ab);
  }
  return DT_OK;
}

/* Checks the settings, other than vocabulary and merges, that affect how a word is encoded. */
static dt_status check_model_object(const json_loader *l, const cJSON *model) {
  static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  char key[64];
  if (!json_has_type(model, "BPE")) return json_unsupported(l, "model", model, "type \"BPE\"");
  const cJSON *dropout = json_get(model, "dropout");
  if (!json_missing(dropout) && !(cJSON_IsNumber(dropout) && dropout->valuedouble == 0))
    return json_unsupported(l, "model.dropout", dropout, "null and 0");
  for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
    const cJSON *v = json_get(model, empty[i]);
    snprintf(key, sizeof key, "model.%s", empty[i]);
    if (!json_missing(v) && !(cJSON_IsString(v) && v->valuestring[0] == '\0'))
      return json_unsupported(l, key, v, "null");
  }
  if (!cJSON_IsObject(json_get(model, "vocab")))
    return json_unsupported(l, "model.vocab", json_get(model, "vocab"), "an object");
  if (!cJSON_IsArray(json_get(model, "merges")))
    return json_unsupported(l, "model.merges", json_get(model, "merges"), "a list");
  return DT_OK;
}

/* Reads the setting for symbols that are not tokens. */
static dt_status load_unknown(json_loader *l, const cJSON *model) {
  word_model *words = &l->t->words;
  dt_status status = json_flag(l, model, "ignore_merges", &words->whole);
  if (status == DT_OK) status = json_flag(l, model, "fuse_unk", &words->fuse_unknown);
  if (status == DT_OK) status = json_flag(l, model, "byte_fallback", &words->fallback);
  if (status != DT_OK) return status;
  const cJSON *unknown = json_get(model, "unk_token");
  words->unknown = -1;
  if (cJSON_IsString(unknown))
    words->unknown = vocab_model_id(&l->t->strings, unknown->valuestring, strlen(unknown->valuestring));
  if (words->unknown >= 0 || words->bytes || json_missing(unknown)) return DT_OK; /* bytes: hardly any is unknown */
  return json_unsupported(l, "model.unk_token", unknown, "null or a token of model.vocab");
}

/* The ids of tokens before every text can be checked only when the vocabulary is loaded. */
static dt_status check_beginning(const json_loader *l) {
  for (int i = 0; i < l->t->n_before; i++) {
    int32_t id = l->t->before[i];
    if (id >= l->t->strings.size || !l->t->strings.entry[id].of)
      return dt_fail(l->err, DT_EINPUT, "%s: post_processor: it adds token %d, which neither vocabulary has", l->path,
                     (int)id);
  }
  return DT_OK;
}

static dt_status load(json_loader *l, const cJSON *root) {
  const cJSON *model = json_get(root, "model"), *added = json_get(root, "added_tokens");
  if (!json_missing(added) && !cJSON_IsArray(added)) return json_unsupported(l, "added_tokens", added, "a list");
  dt_status status = check_model_object(l, model);
  if (status == DT_OK) status = load_pipeline(l, root);
  if (status == DT_OK) status = load_strings(l, json_get(model, "vocab"), json_missing(added) ? NULL : added);
  if (status == DT_OK) status = check_beginning(l);
  if (status == DT_OK) status = load_unknown(l, model);
  if (status == DT_OK) status = blame_file(l, tok_complete(l->t, l->err));
  if (status == DT_OK) status = load_merges(l, json_get(model, "merges"));
  if (status == DT_OK) status = add_known_ends(l->t, l->err);
  return status == DT_OK ? add_infill(l->t, NULL, l->err) : status;
}

dt_status tok_open(const char *path, tok **out, dt_error *err) {
  cJSON *root = NULL;
  dt_status status = json_read_object(path, &root, err);
  if (status != DT_OK) return status;
  json_loader l = {.path = path, .err = err, .t = calloc(1, sizeof(tok))};
  status = l.t ? load(&l, root) : dt_fail_memory(err, "a tokenizer", sizeof(tok));
  cJSON_Delete(root);
  if (status != DT_OK) {
    tok_close(l.t);
    return status;
  }
  *out = l.t;
  return DT_OK;
}
