/* NFC: see nfc.h. Only parts that need it are normalized: characters below U+0300 change only before a character from
 * there upwards, and nothing composes across the start of an ASCII character. Decomposition goes character by
 * character, and a counting sort orders the marks, since utf8proc's own ordering takes quadratic time on long runs of
 * marks. */
#include "text/nfc.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define FIRST_MARK_BYTE 0xCC /* U+0300 is CC 80 */
#define HANGUL_T_BASE 0x11A7 /* utf8proc 2.8 drops it as a trailing consonant; it composes with no character */
#define COMPOSE (UTF8PROC_STABLE | UTF8PROC_COMPOSE)
enum { MOST_PARTS = 32 }; /* more than the parts of any character */

typedef struct {
  char *out;
  size_t n, capacity;
  utf8proc_int32_t *chars, *spare; /* one part, decomposed; scratch of the sort */
  size_t n_chars, chars_capacity, spare_capacity;
  dt_error *err;
} normalizer;

/* Makes room for `more` items in a buffer of n; without memory the buffer stays. */
static dt_status reserve(void **buffer, size_t n, size_t more, size_t *capacity, size_t item, dt_error *err) {
  if (more <= *capacity - n) return DT_OK;
  size_t grown = (n + more) + (n + more) / 2;
  void *p = realloc(*buffer, grown * item);
  if (!p) return dt_fail_memory(err, "normalized text", grown * item);
  *buffer = p;
  *capacity = grown;
  return DT_OK;
}

static dt_status append(normalizer *z, const char *s, size_t n) {
  if (n == 0) return DT_OK;
  dt_status status = reserve((void **)&z->out, z->n, n, &z->capacity, 1, z->err);
  if (status != DT_OK) return status;
  memcpy(z->out + z->n, s, n);
  z->n += n;
  return DT_OK;
}

static unsigned class_of(utf8proc_int32_t c) { return (unsigned)utf8proc_get_property(c)->combining_class; }

/* Puts n marks into canonical order: by combining class; equal ones keep their order. */
static dt_status order_marks(normalizer *z, utf8proc_int32_t *marks, size_t n) {
  size_t count[256] = {0}, sum = 0;
  dt_status status = reserve((void **)&z->spare, 0, n, &z->spare_capacity, sizeof *z->spare, z->err);
  if (status != DT_OK) return status;
  for (size_t i = 0; i < n; i++) count[class_of(marks[i])]++;
  for (int c = 0; c < 256; c++) {
    size_t here = count[c];
    count[c] = sum;
    sum += here;
  }
  for (size_t i = 0; i < n; i++) z->spare[count[class_of(marks[i])]++] = marks[i];
  memcpy(marks, z->spare, n * sizeof *marks);
  return DT_OK;
}

/* Composes n decomposed, ordered characters, and appends them. */
static dt_status append_composed(normalizer *z, utf8proc_int32_t *chars, size_t n) {
  utf8proc_ssize_t composed = utf8proc_normalize_utf32(chars, (utf8proc_ssize_t)n, COMPOSE);
  dt_status status = reserve((void **)&z->out, z->n, (size_t)composed * 4, &z->capacity, 1, z->err);
  if (status != DT_OK) return status;
  for (utf8proc_ssize_t i = 0; i < composed; i++)
    z->n += (size_t)utf8proc_encode_char(chars[i], (utf8proc_uint8_t *)z->out + z->n);
  return DT_OK;
}

static dt_status normalize_stretch(normalizer *z, const char *s, size_t n) {
  size_t len, marks = 0; /* number of marks at the end */
  int boundary = 0;
  dt_status status;
  z->n_chars = 0;
  for (size_t i = 0; i < n; i += len) {
    utf8_next(s + i, n - i, &len);
    status = reserve((void **)&z->chars, z->n_chars, MOST_PARTS, &z->chars_capacity, sizeof *z->chars, z->err);
    if (status != DT_OK) return status;
    z->n_chars += (size_t)utf8proc_decompose_char(utf8_code_point(s + i, len), z->chars + z->n_chars, MOST_PARTS,
                                                  COMPOSE, &boundary);
  }
  for (size_t i = 0; i <= z->n_chars; i++) {
    if (i < z->n_chars && class_of(z->chars[i]) != 0) {
      marks++;
    } else {
      if (marks > 1 && (status = order_marks(z, z->chars + i - marks, marks)) != DT_OK) return status;
      marks = 0;
    }
  }
  for (size_t from = 0, i = 1; i <= z->n_chars; i++) {
    if (i < z->n_chars && z->chars[i] != HANGUL_T_BASE) continue;
    if ((status = append_composed(z, z->chars + from, i - from)) != DT_OK) return status;
    from = i;
  }
  return DT_OK;
}

dt_status nfc(const char *s, size_t n, char **out, size_t *out_n, dt_error *err) {
  normalizer z = {.err = err};
  size_t done = 0;
  dt_status status = DT_OK;
  *out = NULL;
  for (;;) {
    size_t at = done;
    while (at < n && (unsigned char)s[at] < FIRST_MARK_BYTE) at++;
    if (at == n) break;
    size_t from = at, to = at;
    if (from > done) { /* the character before may take the mark */
      from--;
      while ((s[from] & 0xC0) == 0x80) from--;
    }
    while (to < n && (unsigned char)s[to] >= 0x80) to++;
    if ((status = append(&z, s + done, from - done)) != DT_OK) break;
    if ((status = normalize_stretch(&z, s + from, to - from)) != DT_OK) break;
    done = to;
  }
  if (status == DT_OK && done > 0) status = append(&z, s + done, n - done);
  free(z.chars);
  free(z.spare);
  if (status != DT_OK) {
    free(z.out);
    return status;
  }
  *out = z.out;
  *out_n = z.n;
  return DT_OK;
}
