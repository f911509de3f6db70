/* Reasoning and answers: see reasoning.h. */
#include "chat/reasoning.h"
#include "system/need.h"

#include "chat/parts.h"
#include "chat/space.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_MARKS = 5 };

typedef struct {
  const char *text;
  bool reasoning; /* what follows is reasoning */
} mark;

/* Answers in the format of gpt-oss are messages, whose marks can come in any order, because the model may also call
 * functions or leave out its reasoning. A template's own texts show only the usual order. */
#define ANALYSIS "<|channel|>analysis<|message|>"
static const mark messages[] = {{ANALYSIS, true},
                                {"<|channel|>final<|message|>", false},
                                {"<|channel|>commentary<|message|>", false},
                                {"<|start|>assistant", false},
                                {"<|end|>", false}};

struct dt_reasoning {
  mark marks[MOST_MARKS + 1]; /* ends with NULL */
  char *texts[2];             /* copies of a chat's marks, which `marks` points to */
  bool anywhere;              /* the marks count anywhere, since they are tokens that do not occur in ordinary text */
  bool reasoning;             /* what comes is reasoning */
  bool fresh;                 /* nothing of this part was passed on yet */
  bool marked;                /* this part follows a mark */
  char *held;                 /* [n] bytes that were not passed on yet */
  size_t n, room;
};

/* Without marks in the template, all of an answer is for the user. */
static dt_status fill_marks(dt_reasoning *t, const dt_chat *chat, dt_error *err) {
  if (!chat->reasoning_begin) return DT_OK;
  t->anywhere = strcmp(chat->reasoning_begin, ANALYSIS) == 0;
  if (t->anywhere) {
    memcpy(t->marks, messages, sizeof messages);
    return DT_OK;
  }
  t->texts[0] = strdup(chat->reasoning_begin), t->texts[1] = strdup(chat->reasoning_mark);
  if (!t->texts[0] || !t->texts[1]) return dt_fail_memory(err, "the reasoning of an answer", 1);
  t->marks[0] = (mark){t->texts[0], true}, t->marks[1] = (mark){t->texts[1], false};
  return DT_OK;
}

dt_status dt_reasoning_open(const dt_chat *chat, bool open, dt_reasoning **out, dt_error *err) {
  NEED(chat, "chat");
  NEED(out, "out");
  dt_reasoning *t = calloc(1, sizeof *t);
  if (!t) return dt_fail_memory(err, "the reasoning of an answer", sizeof *t);
  dt_status status = fill_marks(t, chat, err);
  t->fresh = true;
  t->reasoning = t->marked = open && t->marks[0].text;
  if (status)
    dt_reasoning_close(t);
  else
    *out = t;
  return status;
}

void dt_reasoning_close(dt_reasoning *t) {
  if (!t) return;
  free(t->texts[0]), free(t->texts[1]);
  free(t->held);
  free(t);
}

static size_t blanks_before(const char *s, size_t n) {
  size_t blanks = 0;
  while (blanks < n && chat_is_space(s[n - 1 - blanks])) blanks++;
  return blanks;
}

/* Whether a mark counts after `at` bytes of what is held. A text may speak of <think>: that one counts where an answer
 * begins only, and its end in reasoning only. */
static bool counts(const dt_reasoning *t, const mark *m, size_t at) {
  if (t->anywhere) return true;
  if (!m->reasoning) return t->reasoning;
  return t->fresh && (t->reasoning || !t->marked) && blanks_before(t->held, at) == at;
}

/* Where the first mark begins that counts, or may count once more has come; *whole: it, if it is all there. t->n: there
 * is none. */
static size_t find(const dt_reasoning *t, const mark **whole) {
  *whole = NULL;
  for (size_t at = 0; at < t->n; at++) {
    const char *next = t->held + at;
    for (const mark *m = t->marks; m->text; m++) {
      size_t len = strlen(m->text), left = t->n - at;
      if (memcmp(next, m->text, left < len ? left : len) != 0 || !counts(t, m, at)) continue;
      if (left >= len) *whole = m;
      return at;
    }
  }
  return t->n;
}

/* Passes on the first n held bytes, except the last `after` of them, and drops all n. */
static bool tell(dt_reasoning *t, size_t n, size_t after, dt_on_part on_part, void *user) {
  size_t begin = 0, end = n - after;
  while (t->fresh && t->marked && begin < end && chat_is_space(t->held[begin])) begin++;
  bool more = begin == end || on_part(user, t->reasoning, t->held + begin, end - begin);
  if (begin < end) t->fresh = false;
  memmove(t->held, t->held + n, t->n -= n);
  return more;
}

/* Passes on all bytes whose meaning is certain. */
static bool proceed(dt_reasoning *t, dt_on_part on_part, void *user) {
  const mark *found;
  bool more = true;
  do {
    size_t at = find(t, &found), blanks = blanks_before(t->held, at);
    /* White space before a mark: of reasoning, and of an answer that has not begun. */
    if (!t->reasoning && (!t->fresh || t->marked || blanks < at)) blanks = 0;
    more = (found ? tell(t, at, blanks, on_part, user) : tell(t, at - blanks, 0, on_part, user)) && more;
    if (found) {
      memmove(t->held, t->held + strlen(found->text), t->n -= strlen(found->text));
      t->reasoning = found->reasoning, t->fresh = t->marked = true;
    }
  } while (found);
  return more;
}

bool dt_reasoning_add(dt_reasoning *t, const char *bytes, size_t len, dt_on_part on_part, void *user) {
  if (!t || len == 0) return true;
  if (t->n + len > t->room) {
    size_t room = 2 * (t->n + len);
    char *grown = realloc(t->held, room);
    if (!grown) return (!t->n || tell(t, t->n, 0, on_part, user)) && on_part(user, t->reasoning, bytes, len);
    t->held = grown, t->room = room;
  }
  memcpy(t->held + t->n, bytes, len);
  t->n += len;
  return proceed(t, on_part, user);
}

bool dt_reasoning_end(dt_reasoning *t, dt_on_part on_part, void *user) {
  if (!t || t->n == 0) return true;
  return tell(t, t->n, t->reasoning ? blanks_before(t->held, t->n) : 0, on_part, user);
}
