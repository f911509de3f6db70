/* The answer of a chat as a list of items, in the order in which they were generated: reasoning, texts, and calls of
 * tools. */
#ifndef SERVE_ANSWER_ITEMS_H
#define SERVE_ANSWER_ITEMS_H

#include "serve/answer.h"

typedef struct {
  part_kind kind;   /* PART_REASONING, PART_CONTENT or PART_CALL */
  int number;       /* its index in the list */
  json_text name;   /* of a call: that of its tool; not JSON, its bytes may be any */
  json_text text;   /* the reasoning, the content, or the call's arguments so far; not JSON */
  json_text broken; /* of a call that is not complete and will not be: all of its text; not JSON */
  bool complete;    /* it has ended by itself, not at a limit */
} answer_item;

typedef struct {
  answer_item *list; /* [n] */
  int n;
  bool open;   /* the last item has not ended */
  bool failed; /* out of memory */
} answer_items;

/* What a stream writes when an item begins, grows and ends. */
typedef struct {
  void (*begins)(json_text *out, const answer_head *head, const answer_item *item);
  void (*grows)(json_text *out, const answer_head *head, const answer_item *item, const char *bytes, size_t len);
  void (*ends)(json_text *out, const answer_head *head, const answer_item *item);
} items_events;

/* Adds a part of an answer. on: NULL if nothing is written. */
void items_add(answer_items *a, part_kind kind, const char *bytes, size_t len, const items_events *on, json_text *out,
               const answer_head *head);
/* Ends the answer. It has at least one item: if nothing was generated, an empty text. */
void items_end(answer_items *a, bool complete, const items_events *on, json_text *out, const answer_head *head);

/* Reads a whole answer. False: out of memory. Free *out with items_free in both cases. */
bool items_read(const answer_head *head, const dtl_result *r, answer_items *out);
void items_free(answer_items *a);

#endif
