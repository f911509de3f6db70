/* Prompts of fill-in-the-middle: see infill_prompt.h. */
#include "serve/infill_prompt.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  const ask_server *server;
  int32_t *ids; /* [n] */
  int n;
  refusal *why;
} writing;

static bool add_ids(writing *w, const int32_t *ids, int n) {
  int32_t *grown = realloc(w->ids, sizeof *grown * ((size_t)w->n + (size_t)n + 1));
  if (!grown) {
    *w->why = refusal_say(500, "server_error", "out of memory: the prompt");
    return false;
  }
  w->ids = grown;
  memcpy(w->ids + w->n, ids, sizeof *ids * (size_t)n);
  w->n += n;
  return true;
}

static bool add_mark(writing *w, int32_t id) { return add_ids(w, &id, 1); }

/* Adds what an encoder returned, and frees it. */
static bool add_encoded(writing *w, dt_status status, const dt_error *err, int32_t *ids, int n) {
  if (status) {
    *w->why = refusal_of(err);
    return false;
  }
  bool fine = add_ids(w, ids, n);
  free(ids);
  return fine;
}

/* Adds a text as in a conversation, where what a user writes is no control token. */
static bool add_plain(writing *w, const char *text) {
  dt_range all = {0, strlen(text)};
  const dt_chat_prompt plain = {.text = (char *)text, .len = all.end, .plain = &all, .n_plain = all.end > 0};
  int32_t *ids = NULL;
  int n = 0;
  dt_error err;
  dt_status status = dt_encode_chat(w->server->pair, &plain, &ids, &n, &err);
  return add_encoded(w, status, &err, ids, n);
}

/* The tokens before every text. */
static bool add_beginning(writing *w) {
  int32_t *ids = NULL;
  int n = 0;
  dt_error err;
  dt_status status = dt_encode(w->server->pair, "", 0, &ids, &n, &err);
  return add_encoded(w, status, &err, ids, n);
}

static bool add_file(writing *w, const dt_infill *marks, const char *name) {
  return add_mark(w, marks->file) && add_plain(w, name) && add_plain(w, "\n");
}

/* The pattern of Qwen2.5-Coder for files of a repository, with llama.cpp's names for what has none. A model without
 * marks for it gets only the texts. */
static bool add_extra(writing *w, const dt_infill *marks, const cJSON *extra) {
  const cJSON *one;
  const bool files = marks->file >= 0;
  if (!cJSON_GetArraySize(extra)) return true;
  if (files && marks->repo >= 0 && !(add_mark(w, marks->repo) && add_plain(w, "myproject\n"))) return false;
  cJSON_ArrayForEach(one, extra) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "filename"));
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "text"));
    if (files && !add_file(w, marks, name ? name : "tmp")) return false;
    if (!add_plain(w, text) || !add_plain(w, "\n")) return false;
  }
  return !files || add_file(w, marks, "filename");
}

bool infill_encode(const ask_server *server, const infill_texts *texts, const char *where, int32_t **ids, int *n,
                   refusal *why) {
  writing w = {.server = server, .why = why};
  dt_infill marks;
  if (!dt_pair_infill(server->pair, &marks)) {
    *why = refusal_say(400, INVALID,
                       "%s: the vocabulary of %.100s has no tokens for fill-in-the-middle, such as <|fim_prefix|>",
                       where, server->models[0]);
    return false;
  }
  if (add_beginning(&w) && add_extra(&w, &marks, texts->extra) && add_mark(&w, marks.prefix) &&
      add_plain(&w, texts->prefix) && add_mark(&w, marks.suffix) && add_plain(&w, texts->suffix) &&
      add_mark(&w, marks.middle) && add_plain(&w, texts->begun ? texts->begun : "")) {
    *ids = w.ids, *n = w.n;
    return true;
  }
  free(w.ids);
  return false;
}
