/* From the tree of a regular expression to a grammar: see regex.h. */
#include "grammar/automaton.h"
#include "grammar/characters.h"
#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/written.h"

#include <stdlib.h>

typedef struct {
  bool in_json, in_text; /* in_text: the last item that was written is a text without its closing quote */
  FILE *out;
} writer;

static bool has_anchor(const regex_node *tree) {
  if (tree->kind >= REGEX_BEGIN) return true;
  for (const regex_node *child = tree->child; child; child = child->next)
    if (has_anchor(child)) return true;
  return false;
}

static bool is_plain_choice(const regex_node *join) {
  for (const regex_node *item = join->child; item; item = item->next) {
    if (item->kind == REGEX_BEGIN && item == join->child) continue;
    if (item->kind == REGEX_END && !item->next) continue;
    if (has_anchor(item)) return false;
  }
  return true;
}

bool regex_is_plain(const regex_node *tree) {
  if (tree->kind == REGEX_JOIN) return is_plain_choice(tree);
  for (const regex_node *choice = tree->child; choice; choice = choice->next)
    if (!is_plain_choice(choice)) return false;
  return true;
}

static void close_text(writer *w) {
  if (w->in_text) fputs("\" ", w->out);
  w->in_text = false;
}

/* Consecutive single characters become one text. */
static void put_set(writer *w, const regex_node *set) {
  const rules_range one = set->range[0];
  if (set->n > 1 || one.low < one.high || (w->in_json && characters_escaped(one.low))) {
    close_text(w);
    characters_put(&(characters){.range = (rules_range *)set->range, .n = set->n}, w->in_json, w->out);
    return;
  }
  if (!w->in_text) fputs("\"", w->out);
  w->in_text = true;
  characters_put_one(one.low, w->out);
}

static void put_tree(writer *w, const regex_node *tree);

static void put_repeat(writer *w, const regex_node *repeat) {
  close_text(w);
  put_tree(w, repeat->child);
  close_text(w);
  if (repeat->most < 0 && repeat->least < 2)
    fputs(repeat->least ? "+ " : "* ", w->out);
  else if (repeat->most < 0)
    fprintf(w->out, "{%d,} ", repeat->least);
  else
    fprintf(w->out, "{%d,%d} ", repeat->least, repeat->most);
}

static void put_join(writer *w, const regex_node *join) {
  for (const regex_node *item = join->child; item; item = item->next) put_tree(w, item);
  if (!join->child) fputs("\"\" ", w->out);
}

static void put_tree(writer *w, const regex_node *tree) {
  if (tree->kind == REGEX_SET) {
    put_set(w, tree);
  } else if (tree->kind == REGEX_REPEAT) {
    put_repeat(w, tree);
  } else if (tree->kind == REGEX_JOIN || tree->kind == REGEX_EITHER) { /* in parentheses */
    close_text(w);
    fputs("(", w->out);
    for (const regex_node *one = tree->kind == REGEX_JOIN ? tree : tree->child; one; one = one->next) {
      put_join(w, one);
      close_text(w);
      if (tree->kind == REGEX_JOIN) break;
      if (one->next) fputs("| ", w->out);
    }
    fputs(") ", w->out);
  }
}

/* An outermost alternative, which may have ^ and $ at its ends. */
static void put_choice(writer *w, const regex_node *join) {
  const regex_node *item = join->child;
  const bool begins = item && item->kind == REGEX_BEGIN;
  bool ends = false;
  if (w->in_json && !begins) fputs("plain* ", w->out);
  for (; item; item = item->next) {
    ends = item->kind == REGEX_END;
    put_tree(w, item);
  }
  close_text(w);
  if (w->in_json && !ends) fputs("plain* ", w->out);
  if (!join->child || (join->child->kind >= REGEX_BEGIN)) fputs("\"\" ", w->out);
}

void regex_write(const regex_node *tree, bool in_json, FILE *out) {
  writer w = {.in_json = in_json, .out = out};
  if (tree->kind == REGEX_JOIN) {
    put_choice(&w, tree);
    return;
  }
  for (const regex_node *choice = tree->child; choice; choice = choice->next) {
    put_choice(&w, choice);
    if (choice->next) fputs("| ", out);
  }
}

static void put_plain(arena *a, const char *regex, bool in_json, const char *what, FILE *out) {
  const regex_node *tree = regex_read(a, regex, what);
  if (!regex_is_plain(tree))
    arena_leave(a, dt_fail(a->err, DT_EINPUT,
                           "%s: ^ and $ are supported here only at the ends of the expression, or of an alternative "
                           "outside of parentheses",
                           what));
  regex_write(tree, in_json, out);
}

dt_status regex_put(const char *regex, bool in_json, const char *what, FILE *out, dt_error *err) {
  arena a;
  arena_open(&a);
  a.err = err;
  if (!setjmp(a.out)) put_plain(&a, regex, in_json, what, out);
  arena_close(&a);
  return a.status;
}

static void put_grammar(arena *a, const char *regex, FILE *out) {
  static const char what[] = "regular expression";
  const regex_node *tree = regex_read(a, regex, what);
  if (regex_is_plain(tree)) {
    fputs("root ::= ", out);
    regex_write(tree, false, out);
    putc('\n', out);
  } else {
    const automaton *whole = automaton_of(a, tree, true, what);
    if (!whole->n) arena_leave(a, dt_fail(a->err, DT_EINPUT, "%s: matches no text", what));
    automaton_put(a, whole, "s", false, out);
    fputs("root ::= s-0\n", out);
  }
  if (ftell(out) > GBNF_BYTES)
    arena_leave(a, dt_fail(a->err, DT_EINPUT, "%s: its grammar has more than %d bytes", what, GBNF_BYTES));
}

dt_status regex_to_gbnf(const char *regex, char **gbnf, dt_error *err) {
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  if (!out) return dt_fail_memory(err, "a regular expression", 4096);
  arena a;
  arena_open(&a);
  a.err = err;
  if (!setjmp(a.out)) put_grammar(&a, regex, out);
  arena_close(&a);
  dt_status status = a.status;
  if (!is_written(out, &text) && !status) status = dt_fail_memory(err, "a regular expression", 4096);
  if (status)
    free(text);
  else
    *gbnf = text;
  return status;
}
