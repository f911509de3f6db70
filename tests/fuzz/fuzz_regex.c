/* The compiler of regular expressions, as whole texts and in schemas. A grammar that it makes is accepted by the parser
 * of grammars, or is too large for it. Bytes before a NUL are the expression; those after it are a text along which
 * masks of single bytes advance. */
#include "fuzz.h"

#include "grammar/masks.h"
#include "grammar/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 16, LIMIT = 1 << 18 };

static const char *byte_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)of, (void)first;
  buffer[0] = (char)id;
  *len = 1;
  return buffer;
}

/* Whether something is repeated a hundred times or more. The parser takes long for the grammar of such an expression;
 * fuzz_grammar covers these. */
static bool is_large(const char *regex) {
  while ((regex = strchr(regex, '{')))
    if (strspn(++regex, "0123456789") > 2 || strspn(regex, "0123456789,") > 4) return true;
  return false;
}

static void follow(const char *gbnf, const uint8_t *text, size_t n) {
  static vocabulary *v;
  dt_error err;
  masks *m;
  if (!v && vocabulary_open(257, byte_of, NULL, &(int32_t){256}, 1, &v, NULL)) abort();
  if (masks_open(v, gbnf, &m, &err)) {
    if (!strstr(err.message, "more than") && !strstr(err.message, "at most")) abort();
    return;
  }
  masks_limit(m, LIMIT);
  int32_t at = masks_state(m, masks_enter(m));
  for (size_t i = 0; i < n && i < STEPS && at != MASKS_NOWHERE; i++) at = masks_step(m, at, text[i], false);
  masks_release(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1), *gbnf;
  size_t len;
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  size_t n = strlen(text), behind = n < size ? n + 1 : size;
  bool large = is_large(text);
  if (!regex_to_gbnf(text, &gbnf, NULL)) {
    if (!large) follow(gbnf, data + behind, size - behind);
    free(gbnf);
  }
  FILE *out = open_memstream(&gbnf, &len);
  if (!out) abort();
  fputs("plain ::= [^\"]\nwide ::= [^\\x00-\\x7F]\nescape ::= \"\\\\\" [nt]\nroot ::= ", out);
  dt_status status = regex_put(text, true, "pattern", out, NULL);
  if (fclose(out)) abort();
  if (!status && !large) follow(gbnf, data + behind, size - behind);
  free(gbnf);
  free(text);
  return 0;
}
