/* The layouts of conversations: see chat.h. */
#include "text/chat.h"
#include "system/need.h"

#include "text/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { OWN_TURN, FIRST_TURN, LAST_TURN, NOWHERE } system_place;
typedef enum { AS_IT_IS, TRIM_ANSWERS, TRIM_ALL } trimming;

/* A template has this layout if it has all of `marks`, and not `without`; a newline in a mark also matches one written
 * as "
 * ". */
typedef struct {
  const char *name, *marks[3], *without;
  const char *begin; /* of the whole text, if the template names that token */
  system_place place;
  const char *system[2], *user[2], *answer[2]; /* around each; an answer to come begins with `open` */
  const char *open, *end;
  const char *usual; /* the system text if none is given; NULL: the template's, or none */
  trimming trim;
} layout;

#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define KNOWLEDGE_DATE "Cutting Knowledge Date: December 2023\n"
#define VICUNA_MARK "A chat between a curious user and an artificial intelligence assistant."
#define VICUNA_SYSTEM VICUNA_MARK " The assistant gives helpful, detailed, and polite answers to the user's questions."

/* The first layout that matches is used. */
static const layout layouts[] = {
    {"chatml",
     {"<|im_start|>"},
     "<|im_sep|>",
     "",
     OWN_TURN,
     {"<|im_start|>system\n", "<|im_end|>\n"},
     {"<|im_start|>user\n", "<|im_end|>\n"},
     {"<|im_start|>assistant\n", "<|im_end|>\n"},
     "<|im_start|>assistant\n",
     "<|im_end|>",
     NULL,
     AS_IT_IS},
    {"llama2",
     {"[INST]", "<<SYS>>", "bos_token + '[INST]"},
     NULL,
     "",
     FIRST_TURN,
     {"<<SYS>>\n", "\n<</SYS>>\n\n"},
     {"<s>[INST] ", " [/INST]"},
     {" ", " </s>"},
     "",
     "</s>",
     NULL,
     TRIM_ALL},
    {"llama3.1",
     {"<|start_header_id|>", KNOWLEDGE_DATE},
     NULL,
     "<|begin_of_text|>",
     OWN_TURN,
     {HEADER("system"), "<|eot_id|>"},
     {HEADER("user"), "<|eot_id|>"},
     {HEADER("assistant"), "<|eot_id|>"},
     HEADER("assistant"),
     "<|eot_id|>",
     "",
     TRIM_ALL},
    {"llama3",
     {"<|start_header_id|>"},
     NULL,
     "<|begin_of_text|>",
     OWN_TURN,
     {HEADER("system"), "<|eot_id|>"},
     {HEADER("user"), "<|eot_id|>"},
     {HEADER("assistant"), "<|eot_id|>"},
     HEADER("assistant"),
     "<|eot_id|>",
     NULL,
     TRIM_ALL},
    {"mistral",
     {"'[INST] '", "content'] + eos_token}"},
     "<<SYS>>",
     "<s>",
     NOWHERE,
     {NULL},
     {"[INST] ", " [/INST]"},
     {"", "</s>"},
     "",
     "</s>",
     NULL,
     AS_IT_IS},
    {"mistral-v0.1",
     {"'[INST] '", "eos_token + ' '"},
     "<<SYS>>",
     "<s>",
     NOWHERE,
     {NULL},
     {"[INST] ", " [/INST]"},
     {"", "</s> "},
     "",
     "</s>",
     NULL,
     AS_IT_IS},
    {"mistral-v1",
     {"' [INST] '"},
     NULL,
     "<s>",
     FIRST_TURN,
     {"", "\n\n"},
     {" [INST] ", " [/INST]"},
     {" ", "</s>"},
     "",
     "</s>",
     NULL,
     AS_IT_IS},
    {"mistral-v3",
     {"[AVAILABLE_TOOLS]", "\"[INST] \""},
     NULL,
     "<s>",
     LAST_TURN,
     {"", "\n\n"},
     {"[INST] ", "[/INST]"},
     {" ", "</s>"},
     "",
     "</s>",
     NULL,
     TRIM_ANSWERS},
    {"mistral-v3-tekken",
     {"[AVAILABLE_TOOLS]", "\"[INST]\""},
     NULL,
     "<s>",
     LAST_TURN,
     {"", "\n\n"},
     {"[INST]", "[/INST]"},
     {"", "</s>"},
     "",
     "</s>",
     NULL,
     AS_IT_IS},
    {"mistral-v7",
     {"'[SYSTEM_PROMPT] '"},
     NULL,
     "<s>",
     OWN_TURN,
     {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
     {"[INST] ", "[/INST]"},
     {" ", "</s>"},
     "",
     "</s>",
     NULL,
     AS_IT_IS},
    {"vicuna-lines",
     {"'USER: ' + message['content'].strip() + '\n'", "eos_token + '\n'"},
     NULL,
     "<s>",
     OWN_TURN,
     {"", "\n\n"},
     {"USER: ", "\n"},
     {"ASSISTANT: ", "</s>\n"},
     "ASSISTANT:",
     "</s>",
     NULL,
     TRIM_ALL},
    {"vicuna-spaces",
     {VICUNA_MARK, "' USER: '", "' ASSISTANT: '"},
     NULL,
     "<s>",
     OWN_TURN,
     {"", ""},
     {" USER: ", ""},
     {" ASSISTANT: ", "</s>"},
     " ASSISTANT:",
     "</s>",
     VICUNA_SYSTEM,
     AS_IT_IS},
    {"vicuna",
     {VICUNA_MARK, "'USER: '", "'ASSISTANT: '"},
     NULL,
     "<s>",
     OWN_TURN,
     {"", " "},
     {"USER: ", " "},
     {"ASSISTANT: ", "</s>"},
     "ASSISTANT:",
     "</s>",
     VICUNA_SYSTEM,
     AS_IT_IS},
    {"zephyr",
     {"'<|user|>\n'", "'<|assistant|>\n'", "eos_token"},
     NULL,
     "",
     OWN_TURN,
     {"<|system|>\n", "</s>\n"},
     {"<|user|>\n", "</s>\n"},
     {"<|assistant|>\n", "</s>\n"},
     "<|assistant|>\n",
     "</s>",
     NULL,
     AS_IT_IS},
    {"deepseek-r1",
     {"'<｜User｜>'", "'<｜Assistant｜>'", "'</think>'"},
     NULL,
     "<｜begin▁of▁sentence｜>",
     OWN_TURN,
     {"", ""},
     {"<｜User｜>", ""},
     {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
     "<｜Assistant｜>",
     "<｜end▁of▁sentence｜>",
     NULL,
     AS_IT_IS},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

struct dt_chat {
  const layout *layout;
  bool begins;        /* the text begins with layout->begin */
  bool dates, today;  /* the system text begins with a date; with the date of today */
  bool cuts_thoughts; /* past answers are shown from after "</think>" on */
  bool thinks;        /* an answer begins within "<think>" */
  char *system;       /* the system text if none is given, or NULL */
};

/* ---- recognition ------------------------------------------------------------------------------------------------- */

/* The length of `mark` at the beginning of `text`; 0: it is not there. */
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

static bool fits(const layout *l, const char *template) {
  if (l->without && find(template, l->without)) return false;
  for (int i = 0; i < 3 && l->marks[i]; i++)
    if (!find(template, l->marks[i])) return false;
  return true;
}

static const layout *choose(const char *name, const char *template) {
  for (int i = 0; i < LAYOUTS; i++)
    if (name ? strcmp(layouts[i].name, name) == 0 : fits(&layouts[i], template)) return &layouts[i];
  return NULL;
}

/* A system text that the template has between `at` and the layout's mark, as one literal: malloc'd, or NULL. */
static char *literal(const char *at, const char *mark) {
  char *text = malloc(strlen(at) + 1), *to = text;
  for (; text && *at && !match(at, mark); at++) {
    if (*at == '\'' || *at == '"') break;
    if (*at == '\\' && at[1]) at++;
    *to++ = at[-1] == '\\' && *at == 'n' ? '\n' : *at;
  }
  if (text) *to = '\0';
  if (text && *text && match(at, mark)) return text;
  free(text);
  return NULL;
}

static char *default_system(const layout *l, const char *template) {
  if (l->usual) return strdup(l->usual);
  if (!template || l->place != OWN_TURN || !*l->system[0]) return NULL;
  char *text = NULL;
  for (const char *at = template; !text && (at = find(at, l->system[0]));) text = literal(at, l->system[1]);
  return text;
}

/* Whether an answer begins within a thought: the template ends so; without a template, as in the newest models of the
 * layout. */
static bool begins_thinking(const layout *l, const char *template) {
  char opened[128];
  snprintf(opened, sizeof opened, "%s<think>\n", l->open);
  return template ? *l->open && find(template, opened) : strcmp(l->name, "deepseek-r1") == 0;
}

static dt_status fail_unknown(const char *name, dt_error *err) {
  char known[256] = "";
  for (int i = 0; i < LAYOUTS; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", layouts[i].name);
  }
  if (name) return dt_fail(err, DT_EINPUT, "no chat template '%.40s': %s", name, known);
  return dt_fail(err, DT_EINPUT, "its chat template is none that is known: give --template NAME (%s)", known);
}

dt_status dt_chat_open(const char *name, const char *template, dt_chat **out, dt_error *err) {
  NEED(out, "out");
  NEED(name || template, "name, and the layout too,");
  const layout *l = choose(name, template);
  if (!l) return fail_unknown(name, err);
  if (name) template = NULL;
  dt_chat *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a chat", sizeof *c);
  *c = (dt_chat){.layout = l,
                 .begins = !template || find(template, "bos_token"),
                 .dates = strcmp(l->name, "llama3.1") == 0,
                 .today = template && find(template, "strftime_now"),
                 .cuts_thoughts = template ? find(template, "</think>") != NULL : strcmp(l->name, "deepseek-r1") == 0,
                 .thinks = begins_thinking(l, template),
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

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void put(FILE *out, const char *text) { fputs(text, out); }
static void put_message(FILE *out, dt_message m) { fwrite(m.text, 1, m.len, out); }

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

/* A past answer as it is shown again: without all before the last "</think>". */
static dt_message without_thoughts(const dt_chat *c, dt_message m) {
  static const char end[] = "</think>";
  const size_t n = sizeof end - 1;
  for (size_t at = m.len; c->cuts_thoughts && at >= n; at--) {
    if (memcmp(m.text + at - n, end, n) != 0) continue;
    m = (dt_message){m.text + at, m.len - at};
    while (c->layout->place == OWN_TURN && *c->layout->system[0] && m.len > 0 && *m.text == '\n') m.text++, m.len--;
    break;
  }
  return m;
}

static void put_system(FILE *out, const dt_chat *c, dt_message system, const char *today) {
  put(out, c->layout->system[0]);
  if (c->dates) fprintf(out, KNOWLEDGE_DATE "Today Date: %s\n\n", c->today && today ? today : "26 Jul 2024");
  put_message(out, c->layout->trim == TRIM_ALL && c->layout->place == OWN_TURN ? trim(system) : system);
  put(out, c->layout->system[1]);
}

static void put_turn(FILE *out, const dt_chat *c, const dt_message *system, dt_message m, const char *today) {
  const layout *l = c->layout;
  put(out, l->user[0]);
  if (system) put_system(out, c, *system, today);
  if (l->trim == TRIM_ALL) m = system ? trim_end(m) : trim(m);
  put_message(out, m);
  put(out, l->user[1]);
}

static void put_answer(FILE *out, const dt_chat *c, dt_message m) {
  m = without_thoughts(c, m);
  put(out, c->layout->answer[0]);
  put_message(out, c->layout->trim != AS_IT_IS ? trim(m) : m);
  put(out, c->layout->answer[1]);
}

dt_status dt_chat_text(const dt_chat *c, const dt_message *system, const dt_message *turns, int n, const char *today,
                       char **out, size_t *len, dt_error *err) {
  NEED(c, "chat");
  NEED_LIST(turns, n, "turns");
  NEED(out, "out");
  NEED(len, "len");
  if (n % 2 == 0)
    return dt_fail(err, DT_EINPUT, "a conversation of %d turns: it ends with the user's, of an odd number", n);
  if (system) NEED_TEXT(system->text, system->len, "system");
  for (int i = 0; i < n; i++) NEED_TEXT(turns[i].text, turns[i].len, "a turn");
  const layout *l = c->layout;
  dt_message usual = {c->system, c->system ? strlen(c->system) : 0};
  if (system && l->place == NOWHERE)
    return dt_fail(err, DT_EINPUT, "the chat template %s takes no system text", l->name);
  if (!system && c->system) system = &usual;
  *out = NULL;
  errno = 0;
  FILE *f = open_memstream(out, len);
  if (!f) return dt_fail_memory(err, "a conversation", 1);
  if (c->begins) put(f, l->begin);
  if (system && l->place == OWN_TURN) put_system(f, c, *system, today);
  for (int i = 0; i < n; i++) {
    bool here = (l->place == FIRST_TURN && i == 0) || (l->place == LAST_TURN && i == n - 1);
    if (i % 2)
      put_answer(f, c, turns[i]);
    else
      put_turn(f, c, here ? system : NULL, turns[i], today);
  }
  put(f, l->open);
  if (c->thinks) put(f, "<think>\n");
  if (fclose(f) == 0 && errno != ENOMEM) return DT_OK; /* fclose does not report a failure of its last realloc */
  free(*out);
  return dt_fail_memory(err, "a conversation", 1);
}
