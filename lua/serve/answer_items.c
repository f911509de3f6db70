/* Items of answers: see answer_items.h. */
#include "serve/answer_items.h"

#include <stdlib.h>

static answer_item *last_of(const answer_items *a) { return &a->list[a->n - 1]; }

static void end_item(answer_items *a, bool complete, const items_events *on, json_text *out, const answer_head *head) {
  if (!a->open) return;
  a->open = false;
  last_of(a)->complete = complete;
  if (last_of(a)->name.failed || last_of(a)->text.failed || last_of(a)->broken.failed) a->failed = true;
  if (on) on->ends(out, head, last_of(a));
}

static void begin_item(answer_items *a, part_kind kind, const char *name, size_t len, const items_events *on,
                       json_text *out, const answer_head *head) {
  end_item(a, true, on, out, head);
  answer_item *grown = realloc(a->list, sizeof *grown * ((size_t)a->n + 1));
  if (!grown) {
    a->failed = true;
    return;
  }
  a->list = grown;
  a->list[a->n] = (answer_item){.kind = kind, .number = a->n};
  json_bytes(&a->list[a->n++].name, name, len);
  a->open = true;
  if (on) on->begins(out, head, last_of(a));
}

static void grow_item(answer_items *a, const char *bytes, size_t len, const items_events *on, json_text *out,
                      const answer_head *head) {
  json_bytes(&last_of(a)->text, bytes, len);
  if (on) on->grows(out, head, last_of(a), bytes, len);
}

void items_add(answer_items *a, part_kind kind, const char *bytes, size_t len, const items_events *on, json_text *out,
               const answer_head *head) {
  const bool is_text = kind == PART_CONTENT || kind == PART_REASONING;
  if (kind == PART_CALL) begin_item(a, kind, bytes, len, on, out, head);
  if (is_text && !(a->open && last_of(a)->kind == kind)) begin_item(a, kind, "", 0, on, out, head);
  if (!a->open) return; /* out of memory */
  if (is_text || kind == PART_ARGUMENTS) grow_item(a, bytes, len, on, out, head);
  if (kind == PART_BROKEN) json_bytes(&last_of(a)->broken, bytes, len);
  if (kind == PART_END || kind == PART_BROKEN) end_item(a, kind == PART_END, on, out, head);
}

void items_end(answer_items *a, bool complete, const items_events *on, json_text *out, const answer_head *head) {
  if (!a->n) begin_item(a, PART_CONTENT, "", 0, on, out, head);
  end_item(a, complete, on, out, head);
  if (out && a->failed) out->failed = true;
}

static void on_part(void *user, part_kind kind, int call, const char *bytes, size_t len) {
  (void)call;
  items_add(user, kind, bytes, len, NULL, NULL, NULL);
}

bool items_read(const answer_head *head, const dtl_result *r, answer_items *out) {
  answer_parts *parts;
  *out = (answer_items){0};
  if (!parts_open(head->server, head->ask, &parts)) return false;
  parts_add(parts, r->text, r->text_len, on_part, out);
  parts_end(parts, on_part, out);
  parts_close(parts);
  items_end(out, answer_is_complete(r), NULL, NULL, NULL);
  return !out->failed;
}

void items_free(answer_items *a) {
  for (int i = 0; i < a->n; i++)
    free(a->list[i].name.bytes), free(a->list[i].text.bytes), free(a->list[i].broken.bytes);
  free(a->list);
  *a = (answer_items){0};
}
