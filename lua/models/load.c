/* Opens the pair that a user names: see dtl_load. */
#include "models/load.h"

#include "files/fail.h"
#include "files/user_files.h"
#include "models/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TOLD_MS 1000.0

bool load_took(double ms, char *text, size_t size) {
  *text = '\0';
  if (ms > TOLD_MS) snprintf(text, size, "loaded in %.1f s", ms / 1000);
  return *text;
}

/* At a terminal, shows a line while it is loading. */
static void tell_begin(const char *target) {
  if (isatty(STDERR_FILENO)) fprintf(stderr, "dtrun: loading %s ...", target), fflush(stderr);
}

static void tell_end(const dt_pair *pair) {
  dt_pair_info info;
  char text[40];
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
  if (!pair) return;
  dt_pair_describe(pair, &info);
  if (load_took(info.load_ms, text, sizeof text)) fprintf(stderr, "dtrun: %s\n", text);
  if (info.device_left_out) fprintf(stderr, "dtrun: the GPU is not used: %s\n", info.device_left_out);
  if (info.draft_left_out) fprintf(stderr, "dtrun: the draft that was found is not used: %s\n", info.draft_left_out);
}

static dt_status open_pair(const dtl_load_options *o, dt_pair_options *pair, dt_pair **out, dt_error *err) {
  dt_draft_vocab vocab = {0};
  dt_status status = o->draft_vocab ? dtl_draft_vocab_open(o->draft_vocab, &vocab, err) : DT_OK;
  if (status) return status;
  vocab.texts = o->texts, vocab.n_texts = o->n_texts;
  pair->draft_vocab = o->draft_vocab ? &vocab : NULL;
  if (o->shown) tell_begin(pair->target);
  status = dt_pair_open(pair, out, err);
  dtl_draft_vocab_close(&vocab);
  pair->draft_vocab = NULL;
  if (o->shown) tell_end(status ? NULL : *out);
  return status;
}

/* Checks that there is a layout of conversations. If the target cannot be loaded, that error is reported instead. */
static dt_status check_chat(const char *target, const char *template, dt_error *err) {
  dt_chat *chat = NULL;
  dt_error no_chat;
  dt_status status = dt_model_chat(target, template, &chat, &no_chat);
  dt_chat_close(chat);
  if (!status) return DT_OK;
  dt_status flaw = dt_model_look(target, NULL, err);
  return flaw ? flaw : dtl_fail(err, status, "%s", no_chat.message);
}

dt_status dtl_load(const dtl_load_options *o, dt_pair **out, bool *found, dt_error *err) {
  NEED(o, "options");
  NEED(out, "out");
  NEED(found, "found");
  NEED_LIST(o->texts, o->n_texts, "texts");
  dt_pair_options pair = o->how;
  char *target, *draft;
  found_kind kind = o->how.head_layers ? FOUND_HEADS : FOUND_ANY;
  dt_status status = models_resolve(o->target, o->draft, o->need, kind, &target, &draft, found, err);
  if (status) return status;
  if (!pair.draft_weights) pair.draft_weights = "auto";
  if (!pair.draft_output) pair.draft_output = "auto";
  char *packed = o->no_packed_cache ? NULL : user_path("XDG_CACHE_HOME", ".cache", "packed");
  pair.target = target, pair.draft = draft, pair.packed = packed;
  pair.draft_optional = *found && o->need != DTL_NEEDS_DRAFT;
  if (!status && o->chats) status = check_chat(target, o->layout, err);
  if (!status) status = open_pair(o, &pair, out, err);
  free(target), free(draft), free(packed);
  return status;
}

dt_status dtl_needs(const dtl_load_options *o, dt_needs *out, dt_error *err) {
  NEED(o, "options");
  dt_pair_options pair = o->how;
  char *target, *draft;
  bool found;
  dt_status status = models_resolve(o->target, NULL, DTL_NO_DRAFT, FOUND_ANY, &target, &draft, &found, err);
  if (status) return status;
  pair.target = target;
  status = dt_pair_needs(&pair, out, err);
  free(target), free(draft);
  return status;
}
