/* The text of tokens: see decode.h. */
#include "text/decode.h"

#include "text/alphabet.h"
#include "text/buffer.h"

#include <stdlib.h>
#include <string.h>

static const char WHAT[] = "the vocabulary's text";

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of "<0xNN>"; -1: s is not such a token. */
static int byte_token(const char *s, size_t n) {
  if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>') return -1;
  int high = hex_digit(s[3]), low = hex_digit(s[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A token between two steps: its text, and room for the next step's text. */
typedef struct {
  byte_buffer text, spare;
  bool first, added, is_byte;
  dt_error *err;
} token;

static dt_status run_step(token *t, const decode_step *step) {
  byte_buffer *text = &t->text, *spare = &t->spare;
  spare->n = 0;
  switch (step->kind) {
  case DECODE_ALPHABET: {
    if (t->added) return DT_OK;
    dt_status status = buffer_reserve(spare, text->n, WHAT, t->err);
    if (status) return status;
    spare->n = alphabet_read(text->bytes, text->n, spare->bytes);
    break;
  }
  case DECODE_BYTE: {
    int byte = byte_token(text->bytes, text->n);
    t->is_byte = byte >= 0;
    if (t->is_byte) {
      text->bytes[0] = (char)byte;
      text->n = 1;
    }
    return DT_OK;
  }
  case DECODE_REPLACE: {
    if (t->is_byte) return DT_OK;
    const char *to = t->first ? step->to_first : step->to;
    dt_status status =
        buffer_add_replaced(spare, text->bytes, text->n, step->from, strlen(step->from), to, strlen(to), WHAT, t->err);
    if (status) return status;
    break;
  }
  case DECODE_STRIP: {
    size_t n = strlen(step->from);
    if (!t->first || text->n < n || memcmp(text->bytes, step->from, n) != 0) return DT_OK;
    dt_status status = buffer_add(spare, text->bytes + n, text->n - n, WHAT, t->err);
    if (status) return status;
    break;
  }
  }
  byte_buffer done = *text;
  *text = *spare;
  *spare = done;
  return DT_OK;
}

dt_status decode_tokens(const decode_step *steps, int n_steps, const vocab *v, bool first, token_text *out,
                        dt_error *err) {
  token t = {.first = first, .err = err};
  byte_buffer all = {0};
  dt_status status = buffer_reserve(&all, v->n_bytes, WHAT, err);
  size_t *end = malloc(((size_t)v->size + 1) * sizeof *end);
  if (!status && !end) status = dt_fail_memory(err, WHAT, (size_t)v->size * sizeof *end);
  for (int32_t id = 0; !status && id < v->size; id++) {
    size_t len;
    const char *string = vocab_string(v, id, &len);
    t.added = v->entry[id].of & VOCAB_ADDED;
    t.is_byte = false;
    t.text.n = 0;
    t.text.limit = t.spare.limit = buffer_growth(len);
    status = buffer_add(&t.text, string, len, WHAT, err);
    for (int i = 0; !status && t.text.n > 0 && i < n_steps; i++) status = run_step(&t, &steps[i]);
    if (!status) status = buffer_add(&all, t.text.bytes, t.text.n, WHAT, err);
    if (!status) end[id] = all.n;
  }
  free(t.text.bytes);
  free(t.spare.bytes);
  *out = (token_text){.bytes = all.bytes, .end = end};
  if (status) token_text_free(out);
  return status;
}

void token_text_free(token_text *t) {
  free(t->bytes);
  free(t->end);
  *t = (token_text){0};
}

void decode_free(decode_step *steps, int n_steps) {
  for (int i = 0; i < n_steps; i++) {
    free(steps[i].from);
    free(steps[i].to);
    free(steps[i].to_first);
  }
  free(steps);
}
