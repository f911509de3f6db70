/* Content and calls of an answer: see calls.h. */
#include "chat/call_format.h"
#include "system/need.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
  CONTENT,   /* no call has begun */
  ARGUMENTS, /* inside a JSON object */
  KEYS,      /* with tags: before a key, or the end of the call */
  VALUE,     /* with tags: inside a value */
  AFTER,     /* after the arguments */
  DEAF       /* no memory: all is content */
} state;

struct dt_calls {
  const dt_call_format *format, *f; /* f: of the call that is being read */
  cJSON *tools;
  state state;
  int index;
  bool fresh;              /* nothing but white space since the answer or the last call ended */
  bool called;             /* white space after the last call is dropped */
  char *held;              /* [n] since the call began or, without one, not passed on yet */
  size_t n, room, at;      /* at: how much of it has been read */
  char *name, *key, *type; /* of the call and its value; malloc'd */
  size_t begin;            /* of the arguments or the value */
  int depth, n_keys;       /* depth of brackets; number of keys before this one */
  bool in_string, escaped;
  dt_on_call on_call;
  void *user;
  bool enough; /* on_call wants no more */
};

dt_status dt_calls_open(const dt_call_format *format, const char *tools, dt_calls **out, dt_error *err) {
  NEED(format, "format");
  NEED(out, "out");
  dt_calls *s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "the calls of an answer", sizeof *s);
  *s = (dt_calls){.format = format, .f = format, .fresh = true};
  if (tools) s->tools = cJSON_Parse(tools);
  dt_status status = tools ? call_check_tools(s->tools, err) : DT_OK;
  if (status)
    dt_calls_close(s);
  else
    *out = s;
  return status;
}

void dt_calls_close(dt_calls *s) {
  if (!s) return;
  cJSON_Delete(s->tools);
  free(s->held), free(s->name), free(s->key), free(s->type);
  free(s);
}

/* ---- what is passed on ------------------------------------------------------------------------------------------- */

static void tell(dt_calls *s, dt_call_part part, const char *bytes, size_t len) {
  if (!s->on_call(s->user, part, s->index, bytes, len)) s->enough = true;
}

static void drop(dt_calls *s, size_t n) {
  memmove(s->held, s->held + n, s->n -= n);
  s->at = 0;
}

/* Passes on the first n held bytes as content. */
static void tell_content(dt_calls *s, size_t n) {
  size_t from = 0;
  while (s->called && from < n && chat_is_space(s->held[from])) from++;
  for (size_t i = from; i < n && s->fresh; i++) s->fresh = chat_is_space(s->held[i]);
  if (from < n) {
    s->called = false;
    tell(s, DT_CALL_CONTENT, s->held + from, n - from);
  }
  drop(s, n);
}

static void stop_listening(dt_calls *s) {
  if (s->n) tell(s, s->state == CONTENT || s->state == DEAF ? DT_CALL_CONTENT : DT_CALL_BROKEN, s->held, s->n);
  s->n = 0;
  s->state = DEAF;
}

/* The call is none: its text up to `at` is the user's. */
static void tell_broken(dt_calls *s) {
  tell(s, DT_CALL_BROKEN, s->held, s->at);
  s->fresh = s->called = false;
  s->state = CONTENT;
  drop(s, s->at);
}

static void tell_end(dt_calls *s, size_t used) {
  if (s->f->tags) tell(s, DT_CALL_ARGUMENTS, s->n_keys ? "}" : "{}", s->n_keys ? 1 : 2);
  tell(s, DT_CALL_END, NULL, 0);
  s->index++;
  s->fresh = s->called = true;
  s->state = CONTENT;
  drop(s, used);
}

/* ---- the beginning of a call ------------------------------------------------------------------------------------- */

static bool keep(char **to, call_span span) {
  free(*to);
  *to = strndup(span.bytes, span.n);
  return *to != NULL;
}

static void begin(dt_calls *s, const dt_call_format *f, const call_found *found) {
  if (!keep(&s->name, found->name)) {
    stop_listening(s);
    return;
  }
  s->f = f;
  s->at = s->begin = found->used;
  s->depth = s->n_keys = 0;
  s->in_string = s->escaped = false;
  s->state = f->tags ? KEYS : ARGUMENTS;
  tell(s, DT_CALL_BEGIN, s->name, strlen(s->name));
}

/* What begins a call after `at` bytes of what is held; NULL: nothing. A format without marks counts only where an
 * answer begins, because a text may contain JSON. If a format has no text before the first name, its calls begin like
 * further ones elsewhere. */
static const char *opening(const dt_calls *s, const dt_call_format *f, size_t at) {
  const char *first = f->first + strspn(f->first, " \t\n\r");
  const bool bare = !*first || *first == '{' || (*first == '[' && !(first[1] >= 'A' && first[1] <= 'Z'));
  bool fresh = s->fresh;
  for (size_t i = 0; i < at && fresh; i++) fresh = chat_is_space(s->held[i]);
  return !bare || fresh ? f->first : *first ? NULL : f->next;
}

static call_match begins_at(const dt_calls *s, size_t at, bool final, const dt_call_format **f, call_found *found) {
  for (*f = s->format; *f; *f = (*f)->also) {
    *found = (call_found){.used = at};
    const char *from = opening(s, *f, at);
    call_match match = from ? call_match_head(*f, from, s->held, s->n, found) : CALL_NO;
    /* Without a text before it, a name must be a tool's. */
    if (match == CALL_YES && !*from && !call_find_tool(s->tools, found->name)) match = CALL_NO;
    if (match == CALL_YES || (match == CALL_MAYBE && !final)) return match;
  }
  return CALL_NO;
}

/* Returns whether there is more to read. */
static bool read_content(dt_calls *s, bool final) {
  const dt_call_format *f;
  call_found found;
  for (size_t at = 0; at < s->n; at++) {
    call_match match = begins_at(s, at, final, &f, &found);
    if (match != CALL_NO) {
      const char *from = opening(s, f, at);
      if (at) tell_content(s, at);
      if (match == CALL_MAYBE || s->enough) return false;
      found = (call_found){0};
      call_match_head(f, from, s->held, s->n, &found); /* the spans moved with the text */
      begin(s, f, &found);
      return true;
    }
    while (chat_is_space(s->held[at]) && at + 1 < s->n && chat_is_space(s->held[at + 1])) at++;
  }
  if (s->n) tell_content(s, s->n);
  return false;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* Moves `at` past the object, if it ends. */
static bool ends_object(dt_calls *s) {
  while (s->at < s->n) {
    char c = s->held[s->at++];
    if (s->escaped)
      s->escaped = false;
    else if (s->in_string)
      s->escaped = c == '\\', s->in_string = c != '"';
    else if (c == '"')
      s->in_string = true;
    else if (c == '{' || c == '[')
      s->depth++;
    else if ((c == '}' || c == ']') && --s->depth == 0)
      return true;
  }
  return false;
}

static bool read_arguments(dt_calls *s, bool final) {
  const size_t from = s->at;
  const bool ends = ends_object(s);
  if (s->at > from) tell(s, DT_CALL_ARGUMENTS, s->held + from, s->at - from);
  if (ends && call_is_object((call_span){s->held + s->begin, s->at - s->begin})) return s->state = AFTER, true;
  if (!ends && !final) return false;
  tell_broken(s);
  return true;
}

/* Tells the value of a key. */
static bool put_argument(dt_calls *s, call_span value) {
  call_declared declared = call_declared_of(call_find_tool(s->tools, (call_span){s->name, strlen(s->name)}),
                                            (call_span){s->key, strlen(s->key)});
  if (s->type && *s->type)
    declared = strcmp(s->type, "string") == 0 || strcmp(s->type, "true") == 0 ? CALL_STRING : CALL_NOT_STRING;
  char *text = NULL;
  size_t n = 0;
  bool fine = call_put_bytes(s->n_keys ? ", " : "{", s->n_keys ? 2 : 1, &text, &n) &&
              call_put_string((call_span){s->key, strlen(s->key)}, &text, &n) && call_put_bytes(": ", 2, &text, &n) &&
              call_put_argument(s->f, value, declared, &text, &n);
  if (fine) tell(s, DT_CALL_ARGUMENTS, text, n);
  free(text);
  s->n_keys++;
  s->state = KEYS;
  if (!fine) stop_listening(s);
  return fine;
}

/* Where value_end begins, without its white space, or may begin once more has come; SIZE_MAX: nowhere. */
static size_t find_end(const dt_calls *s, bool final, call_match *match, call_found *found) {
  for (size_t at = s->at; at < s->n; at++) {
    if (chat_is_space(s->held[at])) continue;
    *found = (call_found){.key = {s->key, strlen(s->key)}, .used = at};
    *match = call_match_part(s->f->value_end, s->held, s->n, CALL_SPACE_EXACT, found);
    if (*match == CALL_YES || (*match == CALL_MAYBE && !final)) return at;
  }
  return SIZE_MAX;
}

/* A value that stands bare ends where value_end begins; the white space of value_end before it is not the value's. */
static bool read_bare(dt_calls *s, bool final) {
  call_found found;
  call_match match = CALL_NO;
  size_t end = find_end(s, final, &match, &found), space = strspn(s->f->value_end, " \t\n\r");
  if (match != CALL_YES) {
    s->at = end == SIZE_MAX ? s->n : end;
    if (final) tell_broken(s);
    return final;
  }
  size_t len = end - s->begin;
  if (len >= space && memcmp(s->held + end - space, s->f->value_end, space) == 0) len -= space;
  s->at = found.used;
  return put_argument(s, (call_span){s->held + s->begin, len});
}

static bool read_quoted(dt_calls *s, bool final) {
  size_t len = call_value_length(s->held + s->begin, s->n - s->begin, s->f->quote);
  call_found found = {.key = {s->key, strlen(s->key)}, .used = s->begin + len};
  call_match match =
      len == SIZE_MAX ? CALL_MAYBE : call_match_part(s->f->value_end, s->held, s->n, CALL_SPACE_ANY, &found);
  if (match == CALL_MAYBE && !final) return false;
  s->at = match == CALL_YES ? found.used : s->n;
  if (match == CALL_YES) return put_argument(s, (call_span){s->held + s->begin, len});
  tell_broken(s);
  return true;
}

/* ---- the end of a call ------------------------------------------------------------------------------------------- */

/* Returns whether something that is not white space follows. */
static bool has_more(const dt_calls *s) {
  for (size_t i = s->at; i < s->n; i++)
    if (!chat_is_space(s->held[i])) return true;
  return false;
}

/* After the arguments: another call, or the end. */
static bool read_after(dt_calls *s, bool final, call_match key) {
  const dt_call_format *f = s->f;
  call_found next = {.used = s->at}, last = {.used = s->at, .name = {s->name, strlen(s->name)}};
  call_match is_next = f->next && !f->alone ? call_match_head(f, f->next, s->held, s->n, &next) : CALL_NO;
  call_match is_last = call_match_part(f->last, s->held, s->n, CALL_SPACE_ANY, &last);
  if (is_next == CALL_YES) {
    const size_t from = s->at;
    tell_end(s, from);
    next = (call_found){0};
    call_match_head(f, f->next, s->held, s->n, &next);
    begin(s, f, &next);
    return true;
  }
  const bool maybe = key == CALL_MAYBE || is_next == CALL_MAYBE;
  if (!final && (maybe || is_last == CALL_MAYBE)) return false;
  const bool cut = (is_next == CALL_MAYBE || is_last == CALL_MAYBE) && (!f->tags || has_more(s));
  if (is_last != CALL_YES && !cut) {
    if (final && (maybe || is_last == CALL_MAYBE)) s->at = s->n;
    tell_broken(s);
    return true;
  }
  tell_end(s, is_last == CALL_YES ? last.used : s->n);
  return true;
}

static bool read_keys(dt_calls *s, bool final) {
  call_found found = {.used = s->at};
  call_match match = call_match_key(s->f, s->n_keys ? s->f->more : s->f->before, s->held, s->n, &found);
  if (match != CALL_YES) return read_after(s, final, match);
  call_span type = found.type.n ? found.type : (call_span){"", 0};
  if (!keep(&s->key, found.key) || !keep(&s->type, type)) {
    stop_listening(s);
    return false;
  }
  s->at = s->begin = found.used;
  s->state = VALUE;
  return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool read_some(dt_calls *s, bool final) {
  switch (s->state) {
  case CONTENT: return read_content(s, final);
  case ARGUMENTS: return read_arguments(s, final);
  case KEYS: return read_keys(s, final);
  case VALUE: return *s->f->quote ? read_quoted(s, final) : read_bare(s, final);
  case AFTER: return read_after(s, final, CALL_NO);
  default: return stop_listening(s), false;
  }
}

static bool proceed(dt_calls *s, bool final) {
  while (!s->enough && read_some(s, final) && (s->n || s->state != CONTENT)) {}
  return !s->enough;
}

bool dt_calls_add(dt_calls *s, const char *bytes, size_t len, dt_on_call on_call, void *user) {
  if (!s || !len || s->enough) return !s || !s->enough;
  s->on_call = on_call, s->user = user;
  if (s->n + len > s->room) {
    size_t room = 2 * (s->n + len);
    char *grown = realloc(s->held, room);
    if (!grown) {
      stop_listening(s);
      tell(s, DT_CALL_CONTENT, bytes, len);
      return !s->enough;
    }
    s->held = grown, s->room = room;
  }
  memcpy(s->held + s->n, bytes, len);
  s->n += len;
  return proceed(s, false);
}

bool dt_calls_end(dt_calls *s, dt_on_call on_call, void *user) {
  if (!s || s->enough) return !s;
  s->on_call = on_call, s->user = user;
  return proceed(s, true);
}
