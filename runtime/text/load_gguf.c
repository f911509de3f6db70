/* tok_open_gguf: reads and checks the tokenizer's keys of a GGUF file. */
#include "text/load_gguf.h"

#include "text/buffer.h"
#include "text/ends.h"
#include "text/gguf_pre.h"
#include "text/infill_marks.h"
#include "text/steps.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."
#define MARK "\u2581" /* replaces a space in SentencePiece's vocabularies */
#define MOST_TOKENS (1 << 22)

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 }; /* types of tokens */

typedef struct {
  const gguf *g;
  tok *t;
  const gguf_value *tokens;
  int n;
  bool characters; /* the vocabulary has marks for spaces */
  bool phi3;       /* a Phi-3 with a vocabulary of SentencePiece's */
  dt_error *err;
} loader;

static dt_status refuse(const loader *l, const char *key, const char *what) {
  return dt_fail(l->err, DT_EINPUT, "%s: " KEY "%s: %s", gguf_path(l->g), key, what);
}

static const gguf_value *find(const loader *l, const char *key) {
  char name[64];
  snprintf(name, sizeof name, KEY "%s", key);
  return gguf_find(l->g, name);
}

static dt_status get_flag(const loader *l, const char *key, bool *value) {
  const gguf_value *v = find(l, key);
  return !v || gguf_bool(v, 0, value) ? DT_OK : refuse(l, key, "expected true or false");
}

/* Reads an id of the vocabulary; without the key, *id does not change. */
static dt_status get_id(const loader *l, const char *key, int32_t *id) {
  const gguf_value *v = find(l, key);
  int64_t value;
  if (!v) return DT_OK;
  if (!gguf_integer(v, 0, &value) || value < 0 || value >= l->t->strings.size || !l->t->strings.entry[value].of)
    return refuse(l, key, "expected the id of a token");
  *id = (int32_t)value;
  return DT_OK;
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* Whether a row only pads the vocabulary. */
static bool is_padding(const char *string, size_t len, int id) {
  char padding[32];
  int n = snprintf(padding, sizeof padding, "[PAD%d]", id);
  return len == 0 || (len == (size_t)n && memcmp(string, padding, len) == 0);
}

/* Whether a token is a run of marks, as Gemma has them: such files have spaces in their place. */
static bool is_marks(const loader *l, const char *string, size_t len, int64_t type) {
  for (size_t i = 0; i < len; i++)
    if (string[i] != ' ') return false;
  return l->characters && type == USER_DEFINED;
}

static dt_status check_strings(loader *l, size_t *bytes) {
  for (int id = 0; id < l->n; id++) {
    size_t len;
    const char *string = gguf_string(l->tokens, (uint64_t)id, &len);
    if (utf8_valid_prefix(string, len) < len)
      return dt_fail(l->err, DT_EINPUT, "%s: " KEY "tokens: token %d is not UTF-8", gguf_path(l->g), id);
    *bytes += len * (len > 0 && string[0] == ' ' ? strlen(MARK) : 1); /* room for a run of marks */
  }
  return DT_OK;
}

/* Whether the match of an added token includes the white space after it. It does in Phi-3's tokenizer.json; a GGUF file
 * does not say so. */
static bool strips(const loader *l, const char *string, size_t len) {
  static const char *const plain[] = {"<unk>", "<s>", "<|endoftext|>"};
  for (size_t i = 0; l->phi3 && i < sizeof plain / sizeof *plain; i++)
    if (strlen(plain[i]) == len && memcmp(plain[i], string, len) == 0) return false;
  return l->phi3;
}

/* Records a token. Those that are cut out of the text unchanged (control, user-defined, unknown) become added
 * tokens. */
static dt_status file_string(loader *l, int id, const char *string, size_t len, int64_t type) {
  vocab *v = &l->t->strings;
  int32_t other = vocab_find(v, string, len, "", 0);
  if (other >= 0)
    return dt_fail(l->err, DT_EINPUT, "%s: " KEY "tokens: tokens %d and %d are the same string: a token has one id",
                   gguf_path(l->g), (int)other, id);
  bool added = type == UNKNOWN || type == CONTROL || type == USER_DEFINED;
  vocab_put(v, id, string, len, VOCAB_MODEL | (added ? VOCAB_ADDED : 0));
  v->size = id + 1;
  added_token token = {.id = id, .control = type == CONTROL, .rstrip = strips(l, string, len)};
  return added ? added_insert(&l->t->raw, string, len, token, l->err) : DT_OK;
}

/* Records a run of n marks: found in the text as it is, and where spaces have become marks. */
static dt_status file_marks(loader *l, int id, const char *spaces, size_t n) {
  byte_buffer marks = {0};
  dt_status status = buffer_add_replaced(&marks, spaces, n, " ", 1, MARK, strlen(MARK), "a token", l->err);
  if (status == DT_OK) status = file_string(l, id, marks.bytes, marks.n, USER_DEFINED);
  if (status == DT_OK) status = added_insert(&l->t->normalized, marks.bytes, marks.n, (added_token){.id = id}, l->err);
  free(marks.bytes);
  return status;
}

static dt_status load_strings(loader *l) {
  const gguf_value *types = find(l, "token_type");
  vocab *v = &l->t->strings;
  size_t bytes = 0;
  l->tokens = find(l, "tokens");
  if (!l->tokens || !l->tokens->array || l->tokens->type != GGUF_STRING || l->tokens->count > MOST_TOKENS)
    return dt_fail(l->err, DT_EINPUT, "%s: " KEY "tokens: expected at most %d strings", gguf_path(l->g), MOST_TOKENS);
  l->n = (int)l->tokens->count;
  if (!types || types->count != l->tokens->count) return refuse(l, "token_type", "expected a number for every token");
  dt_status status = check_strings(l, &bytes);
  if (status == DT_OK) status = vocab_init(v, l->n, (size_t)l->n, bytes, l->err);
  v->size = 0; /* padding at the end does not count */
  for (int id = 0; status == DT_OK && id < l->n; id++) {
    size_t len;
    int64_t type;
    const char *string = gguf_string(l->tokens, (uint64_t)id, &len);
    if (!gguf_integer(types, (uint64_t)id, &type) || type < NORMAL || type > BYTE)
      return dt_fail(l->err, DT_EINPUT, "%s: " KEY "token_type: token %d: expected a number from 1 to 6",
                     gguf_path(l->g), id);
    if (is_padding(string, len, id)) continue;
    status = is_marks(l, string, len, type) ? file_marks(l, id, string, len) : file_string(l, id, string, len, type);
  }
  return status;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

/* models "gpt2" and "gemma4": "left right"; the first merge has rank 0. */
static dt_status load_merges(loader *l) {
  const gguf_value *merges = find(l, "merges");
  const vocab *v = &l->t->strings;
  if (!merges || !merges->array || merges->type != GGUF_STRING || merges->count > INT32_MAX)
    return refuse(l, "merges", "expected a list of strings");
  dt_status status = bpe_init(&l->t->words.merges, (size_t)merges->count, l->err);
  for (int32_t rank = 0; status == DT_OK && rank < (int32_t)merges->count; rank++) {
    size_t len, left;
    const char *merge = gguf_string(merges, (uint64_t)rank, &len);
    const char *space = len > 1 ? memchr(merge + 1, ' ', len - 1) : NULL;
    left = space ? (size_t)(space - merge) : 0;
    int32_t a = vocab_find(v, merge, left, "", 0), b = -1, ab = -1;
    if (space) b = vocab_find(v, space + 1, len - left - 1, "", 0);
    if (space) ab = vocab_find(v, merge, left, space + 1, len - left - 1);
    if (a < 0 || b < 0 || ab < 0)
      return dt_fail(l->err, DT_EINPUT,
                     "%s: " KEY
                     "merges: merge %d is not two tokens with a space between them that together make a third",
                     gguf_path(l->g), (int)rank);
    bpe_add_merge(&l->t->words.merges, a, b, rank, ab);
  }
  return status;
}

typedef struct {
  double score;
  int32_t id, rank;
} scored;

static int by_score(const void *a, const void *b) {
  const scored *x = a, *y = b;
  return x->score > y->score ? -1 : x->score < y->score ? 1 : (x->id > y->id) - (x->id < y->id);
}

/* Finds every pair of tokens that makes this token; without `merges` it only counts them. */
static size_t find_halves(const vocab *v, const scored *whole, bpe *merges) {
  size_t len, count = 0, step;
  const char *s = vocab_string(v, whole->id, &len);
  for (size_t at = 0; at < len; at += step) {
    utf8_next(s + at, len - at, &step);
    int32_t left = at > 0 ? vocab_find(v, s, at, "", 0) : -1;
    int32_t right = left >= 0 ? vocab_find(v, s + at, len - at, "", 0) : -1;
    if (right < 0) continue;
    count++;
    if (merges) bpe_add_merge(merges, left, right, whole->rank, whole->id);
  }
  return count;
}

/* model "llama": two tokens merge if they make a token; the token of the highest score comes first. */
static dt_status load_scores(loader *l) {
  const gguf_value *scores = find(l, "scores");
  const vocab *v = &l->t->strings;
  size_t pairs = 0;
  if (!scores || scores->count != l->tokens->count) return refuse(l, "scores", "expected a number for every token");
  scored *list = malloc(((size_t)v->size + 1) * sizeof *list);
  if (!list) return dt_fail_memory(l->err, "the tokenizer's scores", (size_t)v->size * sizeof *list);
  dt_status status = DT_OK;
  for (int id = 0; status == DT_OK && id < v->size; id++) {
    list[id].id = id;
    if (!gguf_number(scores, (uint64_t)id, &list[id].score) || list[id].score != list[id].score)
      status = refuse(l, "scores", "expected a number for every token");
    else
      pairs += find_halves(v, &list[id], NULL);
  }
  if (status == DT_OK) status = bpe_init(&l->t->words.merges, pairs, l->err);
  if (status == DT_OK) qsort(list, (size_t)v->size, sizeof *list, by_score);
  for (int i = 0; status == DT_OK && i < v->size; i++) {
    list[i].rank = i > 0 && list[i].score == list[i - 1].score ? list[i - 1].rank : i;
    find_halves(v, &list[i], &l->t->words.merges);
  }
  free(list);
  return status;
}

/* ---- the models -------------------------------------------------------------------------------------------------- */

static dt_status load_gpt2(loader *l, bool *begin) {
  size_t len;
  const char *name = gguf_string(find(l, "pre"), 0, &len);
  if (!name) return refuse(l, "pre", "missing, as in files made before May 2024: convert the model again");
  const gguf_pre *pre = gguf_pre_find(name, len);
  if (!pre)
    return dt_fail(l->err, DT_EINPUT, "%s: " KEY "pre: '%.*s' is not supported", gguf_path(l->g),
                   len < 40 ? (int)len : 40, name);
  *begin = pre->begin;
  l->t->words.bytes = true;
  l->t->words.whole = pre->whole;
  dt_status status = pre->nfc ? add_normalize(l->t, NORMALIZE_NFC, NULL, NULL, l->err) : DT_OK;
  for (int i = 0; status == DT_OK && pre->patterns[i]; i++)
    status = add_pattern(l->t, pre->patterns[i], KEEP_ALL, l->err);
  if (status == DT_OK) status = add_decode(l->t, DECODE_ALPHABET, NULL, NULL, NULL, l->err);
  return status == DT_OK ? load_merges(l) : status;
}

/* The steps of a vocabulary of characters: spaces become marks, what is no token becomes bytes. `space`: one goes
 * before every text, unless the file says otherwise. */
static dt_status load_characters(loader *l, bool space) {
  l->t->words.fallback = l->t->words.fuse_unknown = true;
  dt_status status = get_flag(l, "add_space_prefix", &space);
  if (status == DT_OK) status = get_id(l, "unknown_token_id", &l->t->words.unknown);
  if (status == DT_OK && space) status = add_normalize(l->t, NORMALIZE_PREPEND, NULL, MARK, l->err);
  if (status == DT_OK) status = add_normalize(l->t, NORMALIZE_REPLACE, " ", MARK, l->err);
  if (status == DT_OK) status = add_decode(l->t, DECODE_REPLACE, MARK, " ", " ", l->err);
  if (status == DT_OK) status = add_decode(l->t, DECODE_BYTE, NULL, NULL, NULL, l->err);
  if (status == DT_OK && space) status = add_decode(l->t, DECODE_STRIP, " ", NULL, NULL, l->err);
  return status;
}

static dt_status load_llama(loader *l, bool *begin) {
  *begin = true;
  dt_status status = load_characters(l, true);
  return status == DT_OK ? load_scores(l) : status;
}

static dt_status load_gemma4(loader *l, bool *begin) {
  *begin = true;
  dt_status status = load_characters(l, false);
  return status == DT_OK ? load_merges(l) : status;
}

static dt_status load_begin(loader *l, bool begin) {
  bool end = false;
  int32_t bos = -1;
  dt_status status = get_flag(l, "add_bos_token", &begin);
  if (status == DT_OK) status = get_flag(l, "add_eos_token", &end);
  if (status == DT_OK) status = get_id(l, "bos_token_id", &bos);
  if (status != DT_OK) return status;
  if (end) return refuse(l, "add_eos_token", "true is not supported: it would end every prompt");
  if (!begin) return DT_OK;
  return bos >= 0 ? add_before(l->t, bos, l->err) : refuse(l, "bos_token_id", "missing, but every text begins with it");
}

static dt_status load_ends(loader *l) {
  static const char *const keys[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  dt_status status = DT_OK;
  for (size_t i = 0; status == DT_OK && i < sizeof keys / sizeof *keys; i++) {
    int32_t id = -1;
    status = get_id(l, keys[i], &id);
    if (status == DT_OK && id >= 0) status = add_end(l->t, id, l->err);
  }
  return status == DT_OK ? add_known_ends(l->t, l->err) : status;
}

/* The first name of a prefix, suffix and middle is an older one. */
static dt_status load_infill(loader *l) {
  static const char *const keys[INFILL_MARKS][2] = {[INFILL_PREFIX] = {"prefix_token_id", "fim_pre_token_id"},
                                                    [INFILL_SUFFIX] = {"suffix_token_id", "fim_suf_token_id"},
                                                    [INFILL_MIDDLE] = {"middle_token_id", "fim_mid_token_id"},
                                                    [INFILL_PAD] = {"fim_pad_token_id"},
                                                    [INFILL_REPO] = {"fim_rep_token_id"},
                                                    [INFILL_FILE] = {"fim_sep_token_id"}};
  int32_t named[INFILL_MARKS];
  dt_status status = DT_OK;
  for (int mark = 0; mark < INFILL_MARKS; mark++) {
    named[mark] = -1;
    for (int i = 0; i < 2 && keys[mark][i] && !status; i++) status = get_id(l, keys[mark][i], &named[mark]);
  }
  return status ? status : add_infill(l->t, named, l->err);
}

static bool says(const gguf_value *v, const char *string) {
  size_t len;
  const char *found = gguf_string(v, 0, &len);
  return found && len == strlen(string) && memcmp(found, string, len) == 0;
}

static dt_status fail_model(const loader *l) {
  size_t len = 0;
  const char *found = gguf_string(find(l, "model"), 0, &len);
  return dt_fail(l->err, DT_EINPUT, "%s: " KEY "model: found '%.*s'; supported: gpt2, llama and gemma4",
                 gguf_path(l->g), found ? len < 40 ? (int)len : 40 : 0, found ? found : "");
}

static dt_status load(loader *l) {
  static const struct {
    const char *name;
    dt_status (*load)(loader *, bool *begin);
  } models[] = {{"gpt2", load_gpt2}, {"llama", load_llama}, {"gemma4", load_gemma4}};
  size_t i = 0, n = sizeof models / sizeof *models;
  bool begin = false;
  while (i < n && !says(find(l, "model"), models[i].name)) i++;
  if (i == n) return fail_model(l);
  l->characters = models[i].load != load_gpt2;
  l->phi3 = models[i].load == load_llama && says(gguf_find(l->g, "general.architecture"), "phi3");
  l->t->words.unknown = -1;
  dt_status status = load_strings(l);
  if (status == DT_OK) status = models[i].load(l, &begin);
  if (status == DT_OK) status = load_begin(l, begin);
  if (status == DT_OK) status = tok_complete(l->t, l->err);
  if (status == DT_OK) status = load_ends(l);
  return status == DT_OK ? load_infill(l) : status;
}

dt_status tok_open_gguf(const gguf *g, tok **out, dt_error *err) {
  loader l = {.g = g, .err = err, .t = calloc(1, sizeof(tok))};
  dt_status status = l.t ? load(&l) : dt_fail_memory(err, "a tokenizer", sizeof(tok));
  if (status != DT_OK) {
    tok_close(l.t);
    return status;
  }
  *out = l.t;
  return DT_OK;
}
