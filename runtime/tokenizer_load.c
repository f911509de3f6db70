/* tok_open: reads and checks a tokenizer.json. Whatever would change the ids and is not implemented is refused by name; a
 * tokenizer that opens encodes as Hugging Face does. */
#include "json_file.h"
#include "nfc.h"
#include "tokenizer.h"
#include "tokenizer_parts.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ID ((1 << 22) - 1) /* an id costs memory whether it is used or not */

/* White_Space is written out because PCRE2's \s also takes U+180E, which has not been white space since Unicode 6.3. */
#define SPACES "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define GPT2_WORD                                                                                                      \
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES "\\p{L}\\p{N}]+|[" SPACES "]+(?![^" SPACES "])|[" SPACES   \
  "]+"

typedef struct {
  const char *string; /* NULL: an empty place */
  size_t len;
  int32_t id;
} vocab_place;

typedef struct {
  const char *path;
  tok *t;
  vocab_place *vocab; /* string -> id: open addressing, at most half full */
  size_t vocab_mask;
  const char **string; /* [t->size] id -> string of the file; NULL: no such id */
  bool *is_added;      /* [t->size] the string is an added token's: it stands for itself, not for mapped bytes */
  dt_error *err;
} loader;

/* A string of the file for a message: printable, short, not cut inside a character. */
static const char *shown(const char *s, char out[64]) {
  size_t n = strlen(s), most = n <= 40 ? n : 37;
  while (most > 0 && n > 40 && (s[most] & 0xC0) == 0x80) most--;
  for (size_t i = 0; i < most; i++) out[i] = (unsigned char)s[i] < 0x20 || s[i] == 0x7F ? '?' : s[i];
  strcpy(out + most, n <= 40 ? "" : "...");
  return out;
}

/* What a value is, for a message. */
static const char *described(const cJSON *v, char out[96]) {
  char text[64];
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(v, "type");
  if (!v)
    strcpy(out, "nothing");
  else if (cJSON_IsNull(v))
    strcpy(out, "null");
  else if (cJSON_IsBool(v))
    strcpy(out, cJSON_IsTrue(v) ? "true" : "false");
  else if (cJSON_IsNumber(v))
    snprintf(out, 96, "%.15g", v->valuedouble);
  else if (cJSON_IsString(v))
    snprintf(out, 96, "\"%s\"", shown(v->valuestring, text));
  else if (cJSON_IsString(type))
    snprintf(out, 96, "type \"%s\"", shown(type->valuestring, text));
  else
    strcpy(out, cJSON_IsArray(v) ? "a list" : "an object without a type");
  return out;
}

static dt_status unsupported(const loader *l, const char *key, const cJSON *found, const char *supported) {
  char text[96];
  return dt_fail(l->err, DT_EINPUT, "%s: %s: found %s; supported: %s", l->path, key, described(found, text), supported);
}

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

static bool is_missing(const cJSON *v) { return !v || cJSON_IsNull(v); }

static bool has_type(const cJSON *v, const char *type) {
  const cJSON *found = get(v, "type");
  return cJSON_IsString(found) && strcmp(found->valuestring, type) == 0;
}

/* A flag of an object: `value` when the key is missing. */
static dt_status get_flag(const loader *l, const cJSON *object, const char *key, bool *value) {
  const cJSON *v = get(object, key);
  if (is_missing(v)) return DT_OK;
  if (!cJSON_IsBool(v)) return unsupported(l, key, v, "true and false");
  *value = cJSON_IsTrue(v);
  return DT_OK;
}

static uint64_t hash_bytes(uint64_t h, const char *s, size_t n) { /* FNV-1a */
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001B3);
  return h;
}
#define HASH_START UINT64_C(0xCBF29CE484222325)

/* The place of the string a followed by b: its own, or the empty one where it belongs. */
static vocab_place *find(const loader *l, const char *a, size_t a_len, const char *b, size_t b_len) {
  uint64_t h = hash_bytes(hash_bytes(HASH_START, a, a_len), b, b_len);
  for (size_t i = (h ^ h >> 32) & l->vocab_mask;; i = (i + 1) & l->vocab_mask) {
    vocab_place *p = &l->vocab[i];
    if (!p->string) return p;
    if (p->len == a_len + b_len && memcmp(p->string, a, a_len) == 0 && memcmp(p->string + a_len, b, b_len) == 0)
      return p;
  }
}

/* A key or value of the file that becomes a token's string. */
static dt_status check_utf8(const loader *l, const char *string) {
  size_t len = strlen(string), valid = utf8_valid_prefix(string, len);
  if (valid == len) return DT_OK;
  return dt_fail(l->err, DT_EINPUT, "%s: a token's string is not UTF-8 at its byte %zu: JSON is UTF-8", l->path, valid);
}

static dt_status get_id(const loader *l, const cJSON *number, const char *string, int32_t *id) {
  char value[96], text[64];
  double d = cJSON_IsNumber(number) ? number->valuedouble : -1;
  if (!(d >= 0 && d <= MOST_ID) || d != (double)(int32_t)d)
    return dt_fail(l->err, DT_EINPUT, "%s: the id of \"%s\" is %s: it must be a whole number from 0 to %d", l->path,
                   shown(string, text), described(number, value), MOST_ID);
  *id = (int32_t)d;
  return DT_OK;
}

static dt_status measure_ids(loader *l, const cJSON *vocab, const cJSON *added, size_t *n_strings) {
  const cJSON *v;
  int32_t id = 0;
  *n_strings = 0;
  cJSON_ArrayForEach(v, vocab) {
    dt_status status = check_utf8(l, v->string);
    if (status == DT_OK) status = get_id(l, v, v->string, &id);
    if (status != DT_OK) return status;
    if (id >= l->t->size) l->t->size = id + 1;
    ++*n_strings;
  }
  cJSON_ArrayForEach(v, added) {
    const cJSON *content = get(v, "content");
    if (!cJSON_IsString(content) || content->valuestring[0] == '\0')
      return unsupported(l, "added_tokens: content", content, "a string of at least one character");
    dt_status status = check_utf8(l, content->valuestring);
    if (status == DT_OK) status = get_id(l, get(v, "id"), content->valuestring, &id);
    if (status != DT_OK) return status;
    if (id >= l->t->size) l->t->size = id + 1;
    ++*n_strings;
  }
  return DT_OK;
}

/* Files a string under its id. An added token may be one of the vocabulary's; then both must agree. */
static dt_status file_string(loader *l, const char *string, int32_t id, bool added) {
  char text[64], other[64];
  size_t len = strlen(string);
  vocab_place *p = find(l, string, len, "", 0);
  if (p->string && (!added || l->is_added[p->id]))
    return dt_fail(l->err, DT_EINPUT, "%s: %s lists \"%s\" twice: a token has one id", l->path,
                   added ? "added_tokens" : "model.vocab", shown(string, text));
  if (p->string && p->id != id)
    return dt_fail(l->err, DT_EINPUT, "%s: \"%s\" has id %d in model.vocab and %d in added_tokens: they must be equal",
                   l->path, shown(string, text), (int)p->id, (int)id);
  if (!p->string && l->string[id])
    return dt_fail(l->err, DT_EINPUT, "%s: \"%s\" and \"%s\" have the same id %d: an id stands for one token", l->path,
                   shown(l->string[id], other), shown(string, text), (int)id);
  *p = (vocab_place){.string = string, .len = len, .id = id};
  l->string[id] = string;
  l->is_added[id] = added;
  return DT_OK;
}

static dt_status load_added_token(loader *l, const cJSON *token) {
  const char *content = get(token, "content")->valuestring;
  static const char *const unknown[] = {"single_word", "lstrip", "rstrip"};
  char text[64];
  int32_t id = 0;
  dt_status status = get_id(l, get(token, "id"), content, &id);
  if (status == DT_OK) status = file_string(l, content, id, true);
  for (size_t i = 0; status == DT_OK && i < sizeof unknown / sizeof *unknown; i++) {
    bool flag = false;
    status = get_flag(l, token, unknown[i], &flag);
    if (flag)
      status = dt_fail(l->err, DT_EINPUT, "%s: added_tokens: \"%s\" has %s true; supported: false", l->path,
                       shown(content, text), unknown[i]);
  }
  bool special = false;
  if (status == DT_OK) status = get_flag(l, token, "special", &special);
  bool normalized = !special;
  if (status == DT_OK) status = get_flag(l, token, "normalized", &normalized);
  if (status != DT_OK) return status;

  if (!normalized) return added_insert(&l->t->raw, content, strlen(content), id, l->err);
  char *changed = NULL;
  size_t len = strlen(content);
  if (l->t->nfc) status = nfc(content, len, &changed, &len, l->err);
  if (status == DT_OK)
    status = added_insert(&l->t->normalized, changed ? changed : content, changed ? len : strlen(content), id, l->err);
  free(changed);
  return status;
}

static dt_status load_strings(loader *l, const cJSON *vocab, const cJSON *added) {
  size_t n_strings, places = 16;
  dt_status status = measure_ids(l, vocab, added, &n_strings);
  if (status != DT_OK) return status;
  while (places < 2 * n_strings) places *= 2;
  size_t size = (size_t)l->t->size;
  l->vocab = calloc(places, sizeof *l->vocab);
  l->vocab_mask = places - 1;
  l->string = calloc(size + 1, sizeof *l->string); /* + 1: an empty vocabulary gets as far as its message */
  l->is_added = calloc(size + 1, sizeof *l->is_added);
  if (!l->vocab || !l->string || !l->is_added)
    return dt_fail_memory(l->err, "the vocabulary", places * sizeof *l->vocab);

  const cJSON *v;
  cJSON_ArrayForEach(v, vocab) {
    int32_t id = 0;
    status = get_id(l, v, v->string, &id);
    if (status == DT_OK) status = file_string(l, v->string, id, false);
    if (status != DT_OK) return status;
  }
  cJSON_ArrayForEach(v, added) {
    status = load_added_token(l, v);
    if (status != DT_OK) return status;
  }
  return DT_OK;
}

/* GPT-2's alphabet: bytes that are printable in Latin-1 are written as themselves, the others as U+0100, U+0101, ... in order
 * of the byte. */
enum { ALPHABET_END = 0x100 + 68 };
static void make_alphabet(int32_t character[256], int byte[ALPHABET_END]) {
  int next = 0x100;
  for (int c = 0; c < ALPHABET_END; c++) byte[c] = -1;
  for (int b = 0; b < 256; b++) {
    bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    character[b] = printable ? b : next++;
    byte[character[b]] = b;
  }
}

/* Writes the bytes that a string of the vocabulary stands for and returns how many. A string with a character outside of the
 * alphabet stands for itself. */
static size_t map_to_bytes(const char *string, const int byte[ALPHABET_END], char *out) {
  size_t n = strlen(string), written = 0, len;
  for (size_t i = 0; i < n; i += len) {
    utf8_next(string + i, n - i, &len);
    int32_t c = utf8_code_point(string + i, len);
    if (c >= ALPHABET_END || byte[c] < 0) {
      memcpy(out, string, n);
      return n;
    }
    out[written++] = (char)byte[c];
  }
  return written;
}

static dt_status load_bytes(loader *l) {
  tok *t = l->t;
  int32_t character[256];
  int byte[ALPHABET_END];
  make_alphabet(character, byte);

  size_t all = 0;
  for (int id = 0; id < t->size; id++) all += l->string[id] ? strlen(l->string[id]) : 0;
  t->text = malloc(all + 1);
  t->text_end = malloc(((size_t)t->size + 1) * sizeof *t->text_end);
  if (!t->text || !t->text_end) return dt_fail_memory(l->err, "the vocabulary's text", all);
  size_t at = 0;
  for (int id = 0; id < t->size; id++) {
    const char *s = l->string[id];
    if (s && l->is_added[id]) {
      memcpy(t->text + at, s, strlen(s));
      at += strlen(s);
    } else if (s) {
      at += map_to_bytes(s, byte, t->text + at);
    }
    t->text_end[id] = at;
  }

  for (int b = 0; b < 256; b++) {
    char symbol[2];
    bool one = character[b] < 0x80;
    symbol[0] = (char)(one ? character[b] : 0xC0 | character[b] >> 6);
    symbol[1] = (char)(0x80 | (character[b] & 0x3F));
    const vocab_place *p = find(l, symbol, one ? 1 : 2, "", 0);
    t->merges.byte_id[b] = p->string ? p->id : -1;
    if (!p->string && b != 0xC0 && b != 0xC1 && b < 0xF5) /* the others never occur in UTF-8 */
      return dt_fail(
          l->err, DT_EINPUT,
          "%s: model.vocab: no token for the byte 0x%02X (written U+%04X): byte-level BPE needs one for every "
          "byte of UTF-8",
          l->path, b, (unsigned)character[b]);
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

static dt_status load_merges(loader *l, const cJSON *merges, uint64_t *hash) {
  const cJSON *merge;
  int32_t rank = 0;
  dt_status status = bpe_init(&l->t->merges, (size_t)cJSON_GetArraySize(merges), l->err);
  if (status != DT_OK) return status;
  cJSON_ArrayForEach(merge, merges) {
    const char *half[2];
    size_t len[2];
    char text[96], left[64], right[64];
    if (!halves(merge, half, len))
      return dt_fail(l->err, DT_EINPUT, "%s: model.merges: merge %d is %s: it must be \"a b\" or [\"a\", \"b\"]",
                     l->path, (int)rank, described(merge, text));
    const vocab_place *a = find(l, half[0], len[0], "", 0), *b = find(l, half[1], len[1], "", 0),
                      *ab = find(l, half[0], len[0], half[1], len[1]);
    if (!a->string || !b->string || !ab->string) {
      char first[64];
      snprintf(first, sizeof first, "%.*s", (int)(len[0] < 63 ? len[0] : 63), half[0]);
      return dt_fail(l->err, DT_EINPUT, "%s: model.merges: merge %d joins \"%s\" and \"%s\": model.vocab lacks %s",
                     l->path, (int)rank, shown(first, left), shown(half[1], right),
                     !a->string   ? "the first"
                     : !b->string ? "the second"
                                  : "the two joined");
    }
    bpe_add_merge(&l->t->merges, a->id, b->id, rank, ab->id);
    int32_t ids[2] = {a->id, b->id};
    *hash = hash_bytes(*hash, (const char *)ids, sizeof ids);
    rank++;
  }
  return DT_OK;
}

/* Everything besides the vocabulary that decides what the ids are. */
static dt_status check_model(loader *l, const cJSON *model) {
  static const char *const off[] = {"byte_fallback", "ignore_merges"};
  static const char *const empty[] = {"unk_token", "continuing_subword_prefix", "end_of_word_suffix"};
  char key[64];
  if (!has_type(model, "BPE")) return unsupported(l, "model", model, "type \"BPE\"");
  const cJSON *dropout = get(model, "dropout");
  if (!is_missing(dropout) && !(cJSON_IsNumber(dropout) && dropout->valuedouble == 0))
    return unsupported(l, "model.dropout", dropout, "null and 0");
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
    const cJSON *v = get(model, off[i]);
    snprintf(key, sizeof key, "model.%s", off[i]);
    if (!is_missing(v) && !cJSON_IsFalse(v)) return unsupported(l, key, v, "false");
  }
  for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
    const cJSON *v = get(model, empty[i]);
    snprintf(key, sizeof key, "model.%s", empty[i]);
    if (!is_missing(v) && !(i > 0 && cJSON_IsString(v) && v->valuestring[0] == '\0'))
      return unsupported(l, key, v, "null (a byte-level vocabulary has a token for every byte)");
  }
  if (!cJSON_IsObject(get(model, "vocab"))) return unsupported(l, "model.vocab", get(model, "vocab"), "an object");
  if (!cJSON_IsArray(get(model, "merges"))) return unsupported(l, "model.merges", get(model, "merges"), "a list");
  return DT_OK;
}

static dt_status check_pipeline(loader *l, const cJSON *root, bool *use_regex) {
  const cJSON *normalizer = get(root, "normalizer"), *pre = get(root, "pre_tokenizer"), *decoder = get(root, "decoder");
  l->t->nfc = has_type(normalizer, "NFC");
  if (!l->t->nfc && !is_missing(normalizer)) return unsupported(l, "normalizer", normalizer, "type \"NFC\" and null");

  if (!has_type(pre, "ByteLevel")) return unsupported(l, "pre_tokenizer", pre, "type \"ByteLevel\"");
  l->t->prefix_space = true; /* Hugging Face's default */
  dt_status status = get_flag(l, pre, "add_prefix_space", &l->t->prefix_space);
  if (status == DT_OK) status = get_flag(l, pre, "use_regex", use_regex);
  if (status != DT_OK) return status;

  if (!has_type(decoder, "ByteLevel")) return unsupported(l, "decoder", decoder, "type \"ByteLevel\"");

  const cJSON *post = get(root, "post_processor");
  if (is_missing(post) || has_type(post, "ByteLevel")) return DT_OK;
  if (!has_type(post, "TemplateProcessing"))
    return unsupported(l, "post_processor", post,
                       "type \"ByteLevel\", null and a TemplateProcessing that adds no token");
  const cJSON *single = get(post, "single"), *piece = cJSON_IsArray(single) ? single->child : NULL;
  if (!piece || piece->next || !cJSON_IsObject(get(piece, "Sequence")))
    return dt_fail(
        l->err, DT_EINPUT,
        "%s: post_processor: found a TemplateProcessing that adds tokens; supported: type \"ByteLevel\", null "
        "and a TemplateProcessing whose `single` is the one sequence",
        l->path);
  return DT_OK;
}

static dt_status compile_split(loader *l) {
  int code;
  PCRE2_SIZE at;
  l->t->split = pcre2_compile((PCRE2_SPTR)GPT2_WORD, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                              &code, &at, NULL);
  if (!l->t->split) {
    PCRE2_UCHAR why[128];
    pcre2_get_error_message(code, why, sizeof why);
    return dt_fail(l->err, DT_EDEVICE, "PCRE2 cannot compile the word pattern, at %zu: %s", (size_t)at,
                   (const char *)why);
  }
  pcre2_jit_compile(l->t->split, PCRE2_JIT_COMPLETE); /* where it fails, matching is interpreted */
  return DT_OK;
}

/* Of ids and strings in order of id, of merges by id, and of which strings are added tokens. */
static uint64_t hash_strings(const loader *l) {
  uint64_t h = HASH_START;
  for (int32_t id = 0; id < l->t->size; id++) {
    if (!l->string[id]) continue;
    h = hash_bytes(h, (const char *)&id, sizeof id);
    h = hash_bytes(h, l->is_added[id] ? "+" : "-", 1);
    h = hash_bytes(h, l->string[id], strlen(l->string[id]) + 1);
  }
  return h;
}

static dt_status load(loader *l, const cJSON *root) {
  bool use_regex = true;
  const cJSON *model = get(root, "model"), *added = get(root, "added_tokens");
  if (!is_missing(added) && !cJSON_IsArray(added)) return unsupported(l, "added_tokens", added, "a list");
  dt_status status = check_model(l, model);
  if (status == DT_OK) status = check_pipeline(l, root, &use_regex);
  if (status == DT_OK) status = load_strings(l, get(model, "vocab"), is_missing(added) ? NULL : added);
  if (status == DT_OK) status = load_bytes(l);
  if (status != DT_OK) return status;
  uint64_t hash = hash_strings(l);
  status = load_merges(l, get(model, "merges"), &hash);
  l->t->fingerprint = hash;
  if (status == DT_OK && use_regex) status = compile_split(l);
  return status;
}

dt_status tok_open(const char *path, tok **out, dt_error *err) {
  cJSON *root = NULL;
  dt_status status = json_read_object(path, &root, err);
  if (status != DT_OK) return status;
  loader l = {.path = path, .err = err, .t = calloc(1, sizeof(tok))};
  status = l.t ? load(&l, root) : dt_fail_memory(err, "a tokenizer", sizeof(tok));
  free(l.vocab);
  free(l.string);
  free(l.is_added);
  cJSON_Delete(root);
  if (status != DT_OK) {
    tok_close(l.t);
    return status;
  }
  *out = l.t;
  return DT_OK;
}
