/* Values that are lists and objects in tags of their own: see call_format.h. */
#include "chat/call_format.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 50 }; /* of nested tags */

/* An element, as in <KEY>VALUE</KEY>. With a prefix before each tag, value_end is PREFIX</KEY>PREFIX. */
typedef struct {
  char *open, *close; /* before a key, and after a value; in `close`, CALL_KEY stands for the key */
  const char *key_end;
} element;

static bool is_element(const dt_call_format *f, element *e) {
  const char *key = strchr(f->value_end, CALL_KEY);
  if (!key) return false;
  const char *slash = key;
  while (slash > f->value_end && *slash != '<') slash--;
  const size_t prefix = (size_t)(slash - f->value_end), more = strlen(f->before), end = strcspn(key, ">") + 1;
  if (!key[end - 1]) return false;
  e->open = calloc(1, prefix + more + 1), e->close = strndup(f->value_end, (size_t)(key - f->value_end) + end);
  if (e->open) memcpy(e->open, f->value_end, prefix), memcpy(e->open + prefix, f->before, more);
  e->key_end = f->key_end;
  return e->open && e->close;
}

/* Matches open, a key and key_end. */
static bool begins(const element *e, call_span text, call_span *key, size_t *used) {
  const dt_call_format f = {.tags = true, .key_end = (char *)e->key_end, .quote = ""};
  call_found found = {0};
  if (call_match_key(&f, e->open, text.bytes, text.n, &found) != CALL_YES) return false;
  *key = found.key, *used = found.used;
  return true;
}

/* Where the element ends that begins at `from`, after its first tag: at its last tag. *after: what follows it. */
static bool find_close(const element *e, call_span text, size_t from, call_span key, size_t *end, size_t *after) {
  int depth = 1;
  for (size_t at = from; at < text.n; at++) {
    call_span inner;
    size_t used;
    call_found found = {.key = key, .used = at};
    if (chat_is_space(text.bytes[at])) continue;
    if (call_match_part(e->close, text.bytes, text.n, CALL_SPACE_EXACT, &found) == CALL_YES) {
      *end = at, *after = found.used;
      if (--depth == 0) return true;
      at = found.used - 1;
    } else if (begins(e, (call_span){text.bytes + at, text.n - at}, &inner, &used)) {
      depth += inner.n == key.n && memcmp(inner.bytes, key.bytes, key.n) == 0;
      at += used - 1;
    }
  }
  return false;
}

static bool is_item(call_span key) { return key.n == 4 && memcmp(key.bytes, "item", 4) == 0; }

static bool put_elements(const element *e, call_span text, call_declared declared, int depth, char **out, size_t *n);

/* The value has elements only, and they are written. */
static bool put_all(const element *e, call_span text, int depth, char **out, size_t *n) {
  call_span key;
  size_t used, end, after, count = 0;
  bool list = false;
  while (text.n && chat_is_space(text.bytes[text.n - 1])) text.n--;
  for (size_t at = 0; at < text.n; at = after) {
    call_span rest = {text.bytes + at, text.n - at};
    if (!begins(e, rest, &key, &used) || !find_close(e, text, at + used, key, &end, &after)) return false;
    if (!count++) list = is_item(key);
    if (list != is_item(key) ||
        !call_put_bytes(count > 1 ? ", "
                        : list    ? "["
                                  : "{",
                        count > 1 ? 2 : 1, out, n) ||
        (!list && (!call_put_string(key, out, n) || !call_put_bytes(": ", 2, out, n))) ||
        !put_elements(e, (call_span){text.bytes + at + used, end - at - used}, CALL_ANY, depth + 1, out, n))
      return false;
  }
  return count && call_put_bytes(list ? "]" : "}", 1, out, n);
}

static bool put_elements(const element *e, call_span text, call_declared declared, int depth, char **out, size_t *n) {
  const size_t before = *n;
  if (declared != CALL_STRING && depth < DEPTH && put_all(e, text, depth, out, n)) return true;
  *n = before;
  return call_put_value(text, declared, "", out, n);
}

bool call_put_argument(const dt_call_format *f, call_span value, call_declared declared, char **out, size_t *n) {
  element e = {0};
  bool fine = is_element(f, &e) ? put_elements(&e, value, declared, 0, out, n)
                                : call_put_value(value, declared, f->quote, out, n);
  free(e.open), free(e.close);
  return fine;
}
