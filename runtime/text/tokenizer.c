/* A tokenizer itself: values computed once on loading, and queries. See tokenizer.h and tokenizer_parts.h. */
#include "text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

/* Hashes the ids that have an entry, and their bytes. FNV-1a 64 does not resist a tokenizer forged to have another's
 * hash, and need not. It only decides whether a draft is used for a target; the target's own tokenizer writes the text,
 * and its own pass decides each token. A wrong draft costs speed. */
static uint64_t hash_tokens(const tok *t) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (int32_t id = 0; id < t->strings.size; id++) {
    if (!t->strings.entry[id].of) continue;
    size_t len;
    const char *bytes = tok_bytes(t, id, false, &len);
    for (int shift = 0; shift < 32; shift += 8) h = (h ^ ((uint32_t)id >> shift & 0xFF)) * UINT64_C(0x100000001B3);
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
  }
  return h;
}

static bool first_differs(const decode_step *s) {
  return s->kind == DECODE_STRIP || (s->kind == DECODE_REPLACE && s->to_first[0] != s->to[0]);
}

dt_status tok_complete(tok *t, dt_error *err) {
  words_find_bytes(&t->words, &t->strings);
  dt_status status = decode_tokens(t->decode, t->n_decode, &t->strings, false, &t->later, err);
  bool differs = false;
  for (int i = 0; i < t->n_decode; i++) differs |= first_differs(&t->decode[i]);
  if (!status && differs) status = decode_tokens(t->decode, t->n_decode, &t->strings, true, &t->first, err);
  if (!status) t->fingerprint = hash_tokens(t);
  return status;
}

const char *tok_bytes(const tok *t, int32_t id, bool first, size_t *len) {
  const token_text *text = first && t->first.end ? &t->first : &t->later;
  *len = 0;
  if (id < 0 || id >= t->strings.size) return "";
  size_t start = id > 0 ? text->end[id - 1] : 0;
  *len = text->end[id] - start;
  return text->bytes + start;
}

int tok_size(const tok *t) { return t->strings.size; }

const int32_t *tok_ends(const tok *t, int *n) {
  *n = t->n_ends;
  return t->ends;
}

int32_t tok_added(const tok *t, const char *string) {
  int32_t id = vocab_find(&t->strings, string, strlen(string), "", 0);
  return id >= 0 && t->strings.entry[id].of & VOCAB_ADDED ? id : -1;
}

int32_t tok_control_at(const tok *t, const char *text, size_t n, size_t *len) {
  added_token raw, normalized;
  const size_t a = added_at(&t->raw, text, n, &raw), b = added_at(&t->normalized, text, n, &normalized);
  const added_token *longest = a > b ? &raw : &normalized;
  *len = a > b ? a : b;
  return longest->control ? longest->id : -1;
}

bool tok_infill(const tok *t, dt_infill *out) {
  const int32_t *id = t->infill;
  *out = (dt_infill){id[INFILL_PREFIX], id[INFILL_SUFFIX], id[INFILL_MIDDLE],
                     id[INFILL_PAD],    id[INFILL_REPO],   id[INFILL_FILE]};
  return out->prefix >= 0 && out->suffix >= 0 && out->middle >= 0;
}

uint64_t tok_fingerprint(const tok *t) { return t->fingerprint; }

void tok_close(tok *t) {
  if (!t) return;
  vocab_free(&t->strings);
  added_free(&t->raw);
  added_free(&t->normalized);
  normalize_free(t->normalize, t->n_normalize);
  split_free(t->split, t->n_split);
  bpe_free(&t->words.merges);
  decode_free(t->decode, t->n_decode);
  token_text_free(&t->later);
  token_text_free(&t->first);
  free(t->before);
  free(t->ends);
  free(t);
}
