/* See head_parts.h. */
#include "model/head_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool head_is_called(const checkpoint *c, const char *part) {
  const cJSON *list = head_item(c, "architectures"), *first = cJSON_IsArray(list) ? list->child : NULL;
  return cJSON_IsString(first) && strstr(first->valuestring, part);
}

dt_status head_keys_of_layer(const checkpoint *c, const dt_shape *target, keys *out, dt_error *err) {
  const cJSON *inner = head_item(c, "transformer_layer_config");
  *out = checkpoint_keys(c, err);
  if (cJSON_IsObject(inner)) out->json = inner;
  const bool named = !c->gguf || head_item(c, "vocab_size");
  return named || cJSON_AddNumberToObject(c->json, "vocab_size", target->vocab)
             ? DT_OK
             : dt_fail_memory(err, "a head's keys", sizeof *c->json);
}

keys head_keys_of_block(const checkpoint *c, const char *name, dt_error *err) {
  static const char *const objects[] = {"dflash_config", "dspark_config"};
  keys k = checkpoint_keys(c, err);
  for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
    if (cJSON_GetObjectItemCaseSensitive(k.json, name)) return k;
    const cJSON *inner = head_item(c, objects[i]);
    if (cJSON_IsObject(inner)) k.json = inner;
  }
  return k;
}

dt_status head_wrong_layers(const head *h, const dt_shape *target, const char *where, dt_error *err) {
  return dt_fail(err, DT_EINPUT,
                 "%s: %s: expected up to %d layers from 0 to %d whose inputs the head reads, as in 2,%d,%d",
                 h->files.path, where, DT_TAPS, target->layers, target->layers / 2, target->layers - 3);
}

dt_status head_read_layers(head *h, const dt_shape *target, const char *layers, dt_error *err) {
  for (const char *at = layers; *at;) {
    char *end;
    long layer = strtol(at, &end, 10);
    if (end == at || layer < 0 || layer > target->layers || h->desc.taps == DT_TAPS || (*end && *end != ',') ||
        (*end == ',' && !end[1]))
      return head_wrong_layers(h, target, "head_layers", err);
    h->desc.tap[h->desc.taps++] = (int)layer;
    at = end + (*end == ',');
  }
  return h->desc.taps ? DT_OK : head_wrong_layers(h, target, "head_layers", err);
}

void head_name_taps(head *h, const char *kind) {
  size_t used = (size_t)snprintf(h->said, sizeof h->said, "%s, layers ", kind);
  for (int i = 0; i < h->desc.taps && used < sizeof h->said; i++)
    used += (size_t)snprintf(h->said + used, sizeof h->said - used, "%s%d", i ? "," : "", h->desc.tap[i]);
}

/* Whether d2t[i] + step * i are n different ids of the target and, if `drafted` lists ids, exactly those. */
static bool serve(const int64_t *d2t, int n, int step, int vocab, const int64_t *drafted, bool *seen) {
  memset(seen, 0, (size_t)vocab * sizeof *seen);
  for (int i = 0; i < n; i++) {
    int64_t id = d2t[i] < -(int64_t)vocab || d2t[i] > vocab ? -1 : d2t[i] + (int64_t)step * i;
    if (id < 0 || id >= vocab || seen[id] || (drafted && !drafted[id])) return false;
    seen[id] = true;
  }
  return true;
}

typedef struct {
  int32_t id, row;
} drafted_id;

static int by_id(const void *a, const void *b) {
  int32_t x = ((const drafted_id *)a)->id, y = ((const drafted_id *)b)->id;
  return (x > y) - (x < y);
}

static dt_status sort_ids(head *h, const int64_t *d2t, int n, int step, dt_error *err) {
  drafted_id *all = malloc((size_t)n * sizeof *all);
  h->ids = malloc((size_t)n * sizeof *h->ids);
  h->id_rows = malloc((size_t)n * sizeof *h->id_rows);
  dt_status status = all && h->ids && h->id_rows ? DT_OK : dt_fail_memory(err, "a head's ids", (size_t)n * 16);
  for (int i = 0; !status && i < n; i++) all[i] = (drafted_id){(int32_t)(d2t[i] + (int64_t)step * i), i};
  if (!status) qsort(all, (size_t)n, sizeof *all, by_id);
  for (int i = 0; !status && i < n; i++) h->ids[i] = all[i].id, h->id_rows[i] = all[i].row;
  free(all);
  h->desc.model.ids = h->ids, h->desc.model.id_rows = h->id_rows, h->desc.model.n_ids = n;
  return status;
}

/* For each row of the output, d2t has the target's id minus the row's number, or the id itself. t2d, if it is there,
 * tells which. Without it: offsets repeat where ids are consecutive, ids never repeat. */
static void read_ids(finder *f, head *h, int n, int vocab) {
  int64_t *d2t = malloc((size_t)n * sizeof *d2t), *t2d = calloc((size_t)vocab, sizeof *t2d);
  bool *seen = malloc((size_t)vocab * sizeof *seen), has_t2d = find_is_there(f, "t2d", NULL);
  if (!d2t || !t2d || !seen) f->status = dt_fail_memory(f->err, "a head's ids", (size_t)vocab * 9);
  find_integers(f, n, "d2t", "d2t", d2t);
  if (has_t2d) find_integers(f, vocab, "t2d", NULL, t2d);
  if (f->status == DT_OK && d2t && seen) {
    const int64_t *drafted = has_t2d ? t2d : NULL;
    bool offsets = serve(d2t, n, 1, vocab, drafted, seen), absolute = serve(d2t, n, 0, vocab, drafted, seen);
    if (!offsets && !absolute)
      f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor d2t: expected %d different ids below %d%s, or offsets to them",
                          f->from->path, n, vocab, has_t2d ? ", those that t2d marks" : "");
    else
      f->status = sort_ids(h, d2t, n, absolute ? 0 : 1, f->err);
  }
  free(d2t), free(t2d), free(seen);
}

void head_find_ends(finder *f, head *h, const dt_shape *target) {
  dt_model_desc *d = &h->desc.model;
  int vocab = d->shape.vocab, H = d->shape.hidden;
  uint64_t rows = find_rows(f, "lm_head.weight", "output.weight");
  bool embeds = find_is_there(f, "embed_tokens.weight", "token_embd.weight"), cut = find_is_there(f, "d2t", "d2t");
  if ((!embeds || !rows) && H != target->hidden && f->status == DT_OK)
    f->status = dt_fail(
        f->err, DT_EINPUT,
        "%s: it has no %s of its own, and cannot use the target's, whose rows have %d numbers, not %d (hidden_size)",
        h->files.path, embeds ? "lm_head.weight" : "embed_tokens.weight", target->hidden, H);
  if ((!embeds || !rows) && vocab != target->vocab) vocab = d->shape.vocab = target->vocab;
  if (embeds) d->embed = find_matrix(f, vocab, H, "embed_tokens.weight", "token_embd.weight");
  if (!rows) {
    if (cut && f->status == DT_OK)
      f->status =
          dt_fail(f->err, DT_EINPUT, "%s: tensor d2t without lm_head.weight: expected both or none", h->files.path);
    return;
  }
  keys k = checkpoint_keys(&h->files, f->err);
  uint64_t listed = find_rows(f, "d2t", "d2t");
  int drafted, usual = cut && listed > 0 && listed < (uint64_t)vocab ? (int)listed : vocab;
  dt_status status = config_int_or(&k, "draft_vocab_size", NULL, usual, vocab, &drafted);
  if (status && !f->status) f->status = status;
  d->unembed = find_matrix(f, drafted, H, "lm_head.weight", "output.weight");
  if (!cut && drafted != vocab && f->status == DT_OK)
    f->status = dt_fail(f->err, DT_EINPUT, "%s: tensor d2t is missing: lm_head.weight has %d of %d ids", h->files.path,
                        drafted, vocab);
  if (cut && f->status == DT_OK) read_ids(f, h, drafted, vocab);
}
