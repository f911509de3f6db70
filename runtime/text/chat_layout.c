/* The layouts of conversations: see chat_layout.h. */
#include "text/chat_layout.h"
#include "system/need.h"

#include "text/buffer.h"
#include "text/chat_layouts.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dt_chat {
  const chat_layout *layout;
  bool begins;            /* the text begins with layout->begin */
  bool any_order;         /* of roles */
  bool dates, today;      /* dates: the system text begins with a date; today: with the date of today */
  bool cuts_reasoning;    /* past answers are shown from after "</think>" on */
  bool channels;          /* past answers are shown without the text between "<|channel>" and "<channel|>" */
  bool harmony;           /* a message about the model comes first; only the final message of a past answer is shown */
  bool lines;             /* a past answer that is not empty begins a line */
  bool modes;             /* the system text is SmolLM3's: it says whether answers begin with reasoning */
  bool overrides, closes; /* for SmolLM3: "/system_override" is supported; "<|im_end|>" follows it */
  const char *lead;       /* begins the next answer, after layout->open; or NULL */
  const char *tail;       /* follows a given system text; or NULL */
  char *system;           /* the default system text, or NULL; DATE in it stands for the date */
};

#define DATE '\1'
#define NO_CHANNEL CHANNEL "thought\n" CHANNEL_END
#define GPT_OSS "You are ChatGPT, a large language model trained by OpenAI."
#define NO_REASONING THINK "\n\n" THINK_END "\n"
#define NO_FUNCTIONS "You do not currently have access to any functions. <functions></functions>" /* of OLMo 3 */
#define SMOLLM "You are a helpful AI assistant named SmolLM, trained by Hugging Face."

/* ---- recognition ------------------------------------------------------------------------------------------------- */

/* The length of `mark` at the beginning of `text`; 0: it is not there. A newline of the mark may be written as \ and
 * n. */
static size_t match(const char *text, const char *mark) {
  const char *at = text;
  for (; *mark; mark++) {
    if (*mark == '\n' && at[0] == '\\' && at[1] == 'n')
      at += 2;
    else if (*at++ != *mark)
      return 0;
  }
  return (size_t)(at - text);
}

/* The end of the first `mark` in `text`, or NULL. */
static const char *find(const char *text, const char *mark) {
  for (; *text; text++) {
    size_t n = match(text, mark);
    if (n) return text + n;
  }
  return NULL;
}

static bool fits(const chat_layout *l, const char *template) {
  if (l->without && find(template, l->without)) return false;
  for (int i = 0; i < 3 && l->marks[i]; i++)
    if (!find(template, l->marks[i])) return false;
  return true;
}

static const chat_layout *choose(const char *name, const char *template) {
  for (int i = 0; i < chat_n_layouts; i++)
    if (name ? strcmp(chat_layouts[i].name, name) == 0 : fits(&chat_layouts[i], template)) return &chat_layouts[i];
  return NULL;
}

/* A text that the template has between `at` and the mark, as one literal without `stops`: malloc'd, or NULL. */
static char *literal(const char *at, const char *mark, const char *stops) {
  char *text = malloc(strlen(at) + 1), *to = text;
  for (; text && *at && !match(at, mark); at++) {
    if (strchr(stops, *at)) break;
    if (*at == '\\' && at[1]) at++;
    *to++ = at[-1] == '\\' && *at == 'n' ? '\n' : *at;
  }
  if (text) *to = '\0';
  if (text && *text && match(at, mark)) return text;
  free(text);
  return NULL;
}

/* Granite's system text: one literal (4.0), or two around the date (3.x). */
static char *granite_system(const char *template) {
  const char *at = find(template, "set system_message = \""),
             *dated = at ? find(at, "strftime_now('%B %d, %Y') + \"") : NULL,
             *tail = find(template, "system_message + \" You are a helpful AI assistant.\"");
  if (!at) return (at = find(template, "default_system_message = '")) ? literal(at, "'", "") : NULL;
  char *begin = literal(at, "\"", ""), *end = dated ? literal(dated, "\"", "") : strdup(""), *whole = NULL;
  if (begin && end &&
      asprintf(&whole, "%s%s%s%s", begin, dated ? (char[]){DATE, '\0'} : "", end,
               tail ? " You are a helpful AI assistant." : "") < 0)
    whole = NULL;
  free(begin);
  free(end);
  return whole;
}

/* SmolLM3's instructions for answers with reasoning. */
static char *smollm3_system(const char *template) {
  const char *at = find(template, SMOLLM " Your");
  char *rest = at ? literal(at, "\n\n", "") : NULL, *whole = NULL;
  if (rest && asprintf(&whole, SMOLLM " Your%s", rest) < 0) whole = NULL;
  free(rest);
  return whole;
}

/* OLMo 3's system text in templates that support functions: two literals. */
static char *olmo3_system(const chat_layout *l, const char *template) {
  const char *at = find(template, l->system[0]);
  char *begin = at ? literal(at, "' -}}", "") : NULL, *whole = NULL;
  if (begin && asprintf(&whole, "%s" NO_FUNCTIONS, begin) < 0) whole = NULL;
  free(begin);
  return whole;
}

static char *default_system(const chat_layout *l, const char *template) {
  if (template && strcmp(l->name, "granite") == 0) return granite_system(template);
  if (template && strcmp(l->name, "smollm3") == 0) return smollm3_system(template);
  if (template && strcmp(l->name, "chatml") == 0 && find(template, "{{- '" NO_FUNCTIONS))
    return olmo3_system(l, template);
  if (template && strcmp(l->name, "harmony") == 0) {
    const char *at = find(template, "set model_identity = \"");
    return at ? literal(at, "\"", "") : NULL;
  }
  if (l->usual) return strdup(l->usual);
  if (!template || l->place != OWN_TURN || !*l->system[0]) return NULL;
  char *text = NULL;
  for (const char *at = template; !text && (at = find(at, l->system[0]));) text = literal(at, l->system[1], "'\"");
  return text;
}

/* The text that begins the next answer: the end of the template or, without a template, that of the newest models with
 * this layout. */
static const char *lead_of(const chat_layout *l, const char *template) {
  char opened[128], closed[128];
  snprintf(opened, sizeof opened, "%s" THINK "\n", l->open);
  snprintf(closed, sizeof closed, "%s" THINK "'", l->open);
  if (strcmp(l->name, "gemma4") == 0) return !template || find(template, NO_CHANNEL) ? NO_CHANNEL : NULL;
  if (template && *l->open && find(template, closed)) return THINK;
  if (template ? *l->open && find(template, opened) : strcmp(l->name, "deepseek-r1") == 0) return THINK "\n";
  return NULL;
}

/* Whether its templates write each message with its role, whatever its neighbours are. One that offers functions (OLMo
 * 3) does not. */
static bool takes_any_order(const chat_layout *l, const char *template) {
  bool written_alike = strcmp(l->name, "chatml") == 0 || strncmp(l->name, "llama3", 6) == 0;
  return written_alike && !(template && find(template, NO_FUNCTIONS));
}

static dt_status fail_unknown(const char *name, dt_error *err) {
  char known[320] = "";
  for (int i = 0; i < chat_n_layouts; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", chat_layouts[i].name);
  }
  if (name) return dt_fail(err, DT_EINPUT, "no chat template '%.40s'; available: %s", name, known);
  return dt_fail(err, DT_EINPUT, "its chat template is unknown: give --template NAME (%s)", known);
}

dt_status dt_chat_open(const char *name, const char *template, dt_chat **out, dt_error *err) {
  NEED(out, "out");
  NEED(name || template, "name, and the layout too,");
  const chat_layout *l = choose(name, template);
  if (!l) return fail_unknown(name, err);
  if (name) template = NULL;
  dt_chat *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a chat", sizeof *c);
  *c = (dt_chat){.layout = l,
                 .begins = !template || find(template, strcmp(l->name, "glm4.5") == 0 ? l->begin : "bos_token"),
                 .any_order = takes_any_order(l, template),
                 .dates = strcmp(l->name, "llama3.1") == 0,
                 .today = template && find(template, "strftime_now"),
                 .cuts_reasoning = template ? find(template, "split('</think>')") != NULL
                                            : strcmp(l->name, "deepseek-r1") == 0 || strcmp(l->name, "glm4.5") == 0,
                 .channels = strcmp(l->name, "gemma4") == 0,
                 .harmony = strcmp(l->name, "harmony") == 0,
                 .lines = strcmp(l->name, "glm4.5") == 0,
                 .modes = strcmp(l->name, "smollm3") == 0,
                 .overrides = !template || find(template, "/system_override"),
                 .closes = template && find(template, "{{- \"<|im_end|>\n\" -}}\n{# ───── main loop"),
                 .lead = lead_of(l, template),
                 .tail = template && find(template, "' " NO_FUNCTIONS "<|im_end|>\n") ? " " NO_FUNCTIONS : NULL,
                 .system = default_system(l, template)};
  *out = c;
  return DT_OK;
}

void dt_chat_close(dt_chat *c) {
  if (!c) return;
  free(c->system);
  free(c);
}

const char *dt_chat_name(const dt_chat *c) { return c ? c->layout->name : NULL; }
const char *dt_chat_end(const dt_chat *c) { return c ? c->layout->end : NULL; }

bool dt_chat_any_order(const dt_chat *c) { return c && c->any_order; }

reasoning_form chat_reasoning_form(const dt_chat *c) {
  return c->harmony ? REASONING_MESSAGE : c->channels ? REASONING_CHANNEL : REASONING_TAGS;
}

bool chat_begins_reasoning(const dt_chat *c) { return c->lead && strncmp(c->lead, THINK, strlen(THINK)) == 0; }

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void put(FILE *out, const char *text) { fputs(text, out); }
static void put_message(FILE *out, dt_message m) {
  if (m.len > 0) fwrite(m.text, 1, m.len, out);
}

/* The bytes of the white space that begins a text, as in Python's str.strip; 0: none. */
static size_t space(const char *s, size_t n) {
  size_t len;
  if (n == 0 || utf8_next(s, n, &len) != UTF8_GOOD) return 0;
  int32_t c = utf8_code_point(s, len);
  bool is = (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
            (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
  return is ? len : 0;
}

static dt_message trim_end(dt_message m) {
  for (size_t at = m.len; at > 0;) {
    do at--;
    while (at > 0 && ((unsigned char)m.text[at] & 0xC0) == 0x80);
    if (space(m.text + at, m.len - at) != m.len - at) break;
    m.len = at;
  }
  return m;
}

static dt_message trim(dt_message m) {
  for (size_t n; (n = space(m.text, m.len)) > 0;) m.text += n, m.len -= n;
  return trim_end(m);
}

/* A past answer as it is shown again: without everything before the last "</think>". */
static dt_message without_reasoning(const dt_chat *c, dt_message m) {
  static const char end[] = THINK_END;
  const size_t n = sizeof end - 1;
  for (size_t at = m.len; c->cuts_reasoning && at >= n; at--) {
    if (memcmp(m.text + at - n, end, n) != 0) continue;
    m = (dt_message){m.text + at, m.len - at};
    while (c->layout->place == OWN_TURN && *c->layout->system[0] && m.len > 0 && *m.text == '\n') m.text++, m.len--;
    break;
  }
  return m;
}

typedef enum { DAY_FIRST, MONTH_FIRST, DIGITS } date_form;

/* Writes "05 Aug 2025" with the month's whole name, the month or the day first, or as 2025-08-05. */
static void put_date(FILE *out, const char *today, date_form form) {
  static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};
  int i = 0;
  while (i < 12 && (strlen(today) < 8 || strncmp(today + 3, months[i], 3) != 0)) i++;
  if (i == 12)
    put(out, today);
  else if (form == DIGITS)
    fprintf(out, "%s-%02d-%.2s", today + 7, i + 1, today);
  else if (form == MONTH_FIRST)
    fprintf(out, "%s %.2s, %s", months[i], today, today + 7);
  else
    fprintf(out, "%.3s%s%s", today, months[i], today + 6);
}

static void put_system(FILE *out, const dt_chat *c, dt_message system, const char *today) {
  bool usual = c->system && system.text == c->system;
  const char *date = usual ? strchr(c->system, DATE) : NULL;
  put(out, c->layout->system[0]);
  if (c->dates) fprintf(out, KNOWLEDGE_DATE "Today Date: %s\n\n", c->today && today ? today : "26 Jul 2024");
  if (date) {
    put_message(out, (dt_message){system.text, (size_t)(date - system.text)});
    put_date(out, today ? today : "26 Jul 2024", MONTH_FIRST);
    put(out, date + 1);
  } else {
    put_message(out, c->layout->trim == TRIM_ALL && c->layout->place == OWN_TURN ? trim(system) : system);
    if (c->tail && !usual) put(out, c->tail);
  }
  put(out, c->layout->system[1]);
}

/* A system text after other turns. */
static void put_later_system(FILE *out, const chat_layout *l, dt_message m) {
  put(out, l->system[0]);
  put_message(out, l->trim == TRIM_ALL ? trim(m) : m);
  put(out, l->system[1]);
}

static bool has(dt_message m, const char *word) { return m.len > 0 && memmem(m.text, m.len, word, strlen(word)); }

/* Takes a word out of a text, whose bytes are b's from then on, and the white space at its end. */
static dt_status remove_word(dt_message *m, byte_buffer *b, const char *word, dt_error *err) {
  byte_buffer rest = {0};
  dt_status status = buffer_reserve(&rest, m->len + 1, "a system text", err);
  if (status == DT_OK && m->len > 0)
    status = buffer_add_replaced(&rest, m->text, m->len, word, strlen(word), "", 0, "a system text", err);
  free(b->bytes);
  *b = rest;
  *m = status == DT_OK ? trim_end((dt_message){rest.bytes, rest.n}) : (dt_message){0};
  return status;
}

/* The system turn of SmolLM3, with or without a system text: "/no_think" in it wants answers without reasoning, and
 * "/system_override" leaves out all but the text. */
static dt_status put_modes(FILE *out, const dt_chat *c, const dt_message *system, bool thinks, const char *today,
                           dt_error *err) {
  dt_message text = system ? *system : (dt_message){0};
  byte_buffer bytes = {0};
  bool alone = c->overrides && has(text, "/system_override");
  dt_status status = remove_word(&text, &bytes, "/no_think", err);
  if (status == DT_OK) status = remove_word(&text, &bytes, "/think", err);
  if (status == DT_OK && alone) status = remove_word(&text, &bytes, "/system_override", err);
  if (alone) {
    put(out, "<|im_start|>system\n");
    put_message(out, text);
    put(out, "<|im_end|>\n");
  } else {
    put(out, c->layout->system[0]);
    if (c->today) put(out, "Today Date: "), put_date(out, today ? today : "26 Jul 2024", DAY_FIRST), put(out, "\n");
    fprintf(out, "Reasoning Mode: /%s\n\n## Custom Instructions\n\n", thinks ? "think" : "no_think");
    if (text.len > 0)
      put_message(out, text);
    else
      put(out, thinks && c->system ? c->system : SMOLLM);
    put(out, c->closes ? "\n\n<|im_end|>\n" : "\n\n");
  }
  free(bytes.bytes);
  return status;
}

/* The message that gpt-oss's conversations begin with. */
static void put_identity(FILE *out, const dt_chat *c, const char *today) {
  fprintf(out,
          "<|start|>system<|message|>%s\nKnowledge cutoff: 2024-06\nCurrent date: ", c->system ? c->system : GPT_OSS);
  put_date(out, today ? today : "26 Jul 2024", DIGITS);
  put(out, "\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every "
           "message.<|end|>");
}

static void put_turn(FILE *out, const dt_chat *c, const dt_message *system, dt_message m, const char *today) {
  const chat_layout *l = c->layout;
  put(out, l->user[0]);
  if (system) put_system(out, c, *system, today);
  if (l->trim == TRIM_TURNS || l->trim == TRIM_ALL) m = system && l->trim == TRIM_ALL ? trim_end(m) : trim(m);
  put_message(out, m);
  put(out, l->user[1]);
}

/* Copies an answer without the text between CHANNEL and CHANNEL_END to `to`, which has room for the whole answer. */
static dt_message without_channels(dt_message m, char *to) {
  size_t n = 0;
  while (m.len > 0) {
    const char *end = memmem(m.text, m.len, CHANNEL_END, strlen(CHANNEL_END));
    size_t part = end ? (size_t)(end - m.text) : m.len, skip = part + (end ? strlen(CHANNEL_END) : 0);
    const char *begin = memmem(m.text, part, CHANNEL, strlen(CHANNEL));
    size_t keep = begin ? (size_t)(begin - m.text) : part;
    memcpy(to + n, m.text, keep);
    n += keep;
    m = (dt_message){m.text + skip, m.len - skip};
  }
  return (dt_message){to, n};
}

/* The final message of an answer. An answer without marks was written by hand and is used as a whole; an answer that
 * ended before its final message gives nothing. */
static dt_message final_of(dt_message m) {
  const char *at = NULL;
  for (dt_message rest = m; has(rest, FINAL);) {
    at = (const char *)memmem(rest.text, rest.len, FINAL, strlen(FINAL)) + strlen(FINAL);
    rest = (dt_message){at, m.len - (size_t)(at - m.text)};
  }
  if (at) return (dt_message){at, m.len - (size_t)(at - m.text)};
  return has(m, ANALYSIS) ? (dt_message){m.text, 0} : m;
}

static void put_answer(FILE *out, const dt_chat *c, dt_message m, bool thinks) {
  char *shorter = c->channels && has(m, CHANNEL) ? malloc(m.len) : NULL; /* a failure is errno's */
  m = shorter ? without_channels(m, shorter) : without_reasoning(c, m);
  put(out, c->layout->answer[0]);
  if (!thinks) put(out, NO_REASONING);
  for (; c->modes && m.len > 0 && *m.text == '\n'; m.len--) m.text++;
  if (c->harmony) m = final_of(m);
  if (c->layout->trim != AS_IT_IS) m = trim(m);
  if (c->lines && m.len > 0) put(out, "\n");
  put_message(out, m);
  put(out, c->layout->answer[1]);
  free(shorter);
}

/* Whether user and model take turns, the user first and last. */
static bool take_turns(const dt_role *roles, int n) {
  for (int i = 0; roles && i < n; i++)
    if (roles[i] != (i % 2 ? DT_ASSISTANT : DT_USER)) return false;
  return n % 2 == 1;
}

dt_status dt_chat_text(const dt_chat *c, const dt_message *system, const dt_message *turns, const dt_role *roles, int n,
                       const char *today, char **out, size_t *len, dt_error *err) {
  NEED(c, "chat");
  NEED_LIST(turns, n, "turns");
  NEED(out, "out");
  NEED(len, "len");
  if (!take_turns(roles, n) && !roles)
    return dt_fail(err, DT_EINPUT, "a conversation of %d turns, expected an odd number, with the user's turn last", n);
  if (!take_turns(roles, n) && !dt_chat_any_order(c))
    return dt_fail(err, DT_EINPUT,
                   "the chat template %s needs alternating turns of user and assistant, with the user's first and last",
                   c->layout->name);
  if (n > 0 && roles && roles[n - 1] == DT_ASSISTANT && c->cuts_reasoning)
    return dt_fail(
        err, DT_EINPUT,
        "the last turn is the assistant's, which is not supported in a chat template that leaves out past reasoning");
  if (system) NEED_TEXT(system->text, system->len, "system");
  for (int i = 0; i < n; i++) NEED_TEXT(turns[i].text, turns[i].len, "a turn");
  const chat_layout *l = c->layout;
  dt_message usual = {c->system, c->system ? strlen(c->system) : 0};
  if (system && l->place == NOWHERE)
    return dt_fail(err, DT_EINPUT, "the chat template %s does not allow a system text", l->name);
  bool thinks = !(c->modes && system && has(*system, "/no_think"));
  if (!system && c->system && !c->modes && !c->harmony) system = &usual;
  if (c->harmony && system && system->len == 0) system = NULL;
  *out = NULL;
  errno = 0;
  FILE *f = open_memstream(out, len);
  if (!f) return dt_fail_memory(err, "a conversation", 1);
  if (c->begins) put(f, l->begin);
  if (c->harmony) put_identity(f, c, today);
  dt_status status = c->modes ? put_modes(f, c, system, thinks, today, err) : DT_OK;
  if (system && l->place == OWN_TURN && !c->modes) put_system(f, c, *system, today);
  for (int i = 0; i < n; i++) {
    bool here = (l->place == FIRST_TURN && i == 0) || (l->place == LAST_TURN && i == n - 1);
    if (roles && roles[i] == DT_SYSTEM)
      put_later_system(f, l, turns[i]);
    else if (roles ? roles[i] == DT_ASSISTANT : i % 2)
      put_answer(f, c, turns[i], thinks);
    else
      put_turn(f, c, here ? system : NULL, turns[i], today);
  }
  put(f, l->open);
  if (c->lead) put(f, c->lead);
  if (!thinks) put(f, NO_REASONING);
  bool written = fclose(f) == 0 && errno != ENOMEM; /* fclose does not report a failure of its last realloc */
  if (written && status == DT_OK) return DT_OK;
  free(*out);
  if (status != DT_OK) return status;
  return dt_fail_memory(err, "a conversation", 1);
}
