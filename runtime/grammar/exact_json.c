/* Reading JSON with all digits: see exact_json.h. */
#include "grammar/exact_json.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char number_bytes[] = "+-.0123456789Ee";

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* RFC 8259, section 6; cJSON takes more. */
static bool is_number(const char *text, size_t len) {
  const char *at = text + (*text == '-');
  size_t n = digits(at);
  if (!n || (*at == '0' && n > 1)) return false;
  at += n;
  if (*at == '.') {
    if (!(n = digits(at + 1))) return false;
    at += 1 + n;
  }
  if (*at == 'e' || *at == 'E') {
    at += 1 + (at[1] == '+' || at[1] == '-');
    if (!(n = digits(at))) return false;
    at += n;
  }
  return at == text + len;
}

/* The next number outside of texts; NULL: there is none. A text with an escaped NUL is refused. */
static const char *next_number(const char *at, bool *has_nul) {
  bool in_text = false;
  for (; *at; at++) {
    if (*at == '"')
      in_text = !in_text;
    else if (in_text && *at == '\\' && at[1]) {
      at++;
      *has_nul |= !strncmp(at, "u0000", 5);
    } else if (!in_text && strchr(number_bytes, *at) && *at != 'e' && *at != 'E')
      return at;
  }
  return NULL;
}

static dt_status check_numbers(const char *what, const char *json, dt_error *err) {
  bool has_nul = false;
  for (const char *at = json; (at = next_number(at, &has_nul));) {
    size_t len = strspn(at, number_bytes);
    if (len > EXACT_JSON_DIGITS)
      return dt_fail(err, DT_EINPUT, "%s: a number of more than %d digits at byte %zu", what, EXACT_JSON_DIGITS,
                     (size_t)(at - json));
    if (!is_number(at, len)) return dt_fail(err, DT_EINPUT, "%s: %.*s is not a JSON number", what, (int)len, at);
    at += len;
  }
  return has_nul ? dt_fail(err, DT_EINPUT, "%s: \\u0000 in a string is not supported", what) : DT_OK;
}

/* Gives its digits to each number, in the order of the text. False: no memory. */
static bool keep_digits(cJSON *item, const char **at) {
  bool has_nul = false; /* NULs were already searched for */
  for (; item; item = item->next) {
    if (!keep_digits(item->child, at)) return false;
    if (!cJSON_IsNumber(item)) continue;
    *at = next_number(*at, &has_nul);
    size_t len = strspn(*at, number_bytes);
    item->valuestring = strndup(*at, len);
    if (!item->valuestring) return false;
    item->type = cJSON_Raw;
    *at += len;
  }
  return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Finds a name that an object has twice; NULL: there is none. *room: there was enough memory. */
static const char *name_twice(const cJSON *item, bool *room) {
  const char *twice = NULL;
  int n = 0;
  for (const cJSON *one = item->child; one && !twice; one = one->next, n++) twice = name_twice(one, room);
  if (twice || !cJSON_IsObject(item) || n < 2) return twice;
  const char **name = malloc((size_t)n * sizeof *name);
  *room &= name != NULL;
  if (!name) return NULL;
  n = 0;
  for (const cJSON *one = item->child; one; one = one->next) name[n++] = one->string;
  qsort(name, (size_t)n, sizeof *name, by_name);
  for (int i = 1; i < n && !twice; i++)
    if (!strcmp(name[i - 1], name[i])) twice = name[i];
  free(name);
  return twice;
}

static dt_status fail_at(const char *what, const char *json, const char *at, dt_error *err) {
  int line = 1;
  const char *begin = json;
  for (const char *c = json; at && c < at; c++)
    if (*c == '\n') line++, begin = c + 1;
  return dt_fail(err, DT_EINPUT, "%s, line %d, column %d: not JSON, or brackets are nested too deeply", what, line,
                 at ? (int)(at - begin) + 1 : 1);
}

dt_status exact_json_read(const char *what, const char *json, size_t most, cJSON **root, dt_error *err) {
  size_t len = strlen(json);
  if (len > most) return dt_fail(err, DT_EINPUT, "%s: %zu bytes, the maximum is %zu", what, len, most);
  size_t good = utf8_valid_prefix(json, len);
  if (good < len) return dt_fail(err, DT_EINPUT, "%s: byte %zu is not UTF-8", what, good);
  dt_status status = check_numbers(what, json, err);
  if (status) return status;
  errno = 0;
  const char *end = NULL;
  *root = cJSON_ParseWithOpts(json, &end, true);
  if (!*root && errno == ENOMEM) return dt_fail_memory(err, what, len); /* cJSON itself does not report this */
  if (!*root) return fail_at(what, json, end, err);
  bool room = true;
  const char *twice = name_twice(*root, &room);
  if (twice) status = dt_fail(err, DT_EINPUT, "%s: the name %.60s is there twice in one object", what, twice);
  if (!status && (!room || !keep_digits(*root, &json))) status = dt_fail_memory(err, what, len);
  if (status) cJSON_Delete(*root);
  return status;
}
