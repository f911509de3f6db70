/* The ends of a text by its lines: see lines.h. */
#include "serve/lines.h"

#include <limits.h>
#include <string.h>

bool lines_read(line_limits *limits, const cJSON *member, refusal *why) {
  const bool is_indent = strcmp(member->string, "n_indent") == 0;
  const double least = is_indent ? 0 : -1, value = cJSON_IsNumber(member) ? member->valuedouble : least - 1;
  if (!(value >= least && value <= INT_MAX && value == (double)(int)value)) {
    *why = refusal_say(400, INVALID, "%s: expected an integer from %d", member->string, (int)least);
    return false;
  }
  if (is_indent)
    limits->indent = (int)value;
  else
    limits->ms = value;
  return true;
}

/* Returns whether the text ends before this byte. */
static bool ends_before(line_state *s, const line_limits *limits, char byte) {
  const bool is_space = byte == ' ' || byte == '\t';
  if (s->counts && !is_space && s->spaces < limits->indent) return true;
  s->counts = byte == '\n' || (s->counts && is_space);
  s->spaces = s->counts && is_space ? s->spaces + 1 : 0;
  s->has_line = s->has_line || byte == '\n';
  return false;
}

size_t lines_take(line_state *s, const line_limits *limits, const char *bytes, size_t len, double now) {
  size_t n = 0;
  if (s->ended) return 0;
  if (!s->len) s->begun = now;
  while (n < len && !ends_before(s, limits, bytes[n])) n++;
  s->len += n;
  s->ended = n < len || (limits->ms > 0 && s->has_line && now - s->begun > limits->ms);
  return n;
}
