/* self.corpus of a policy that declares uses.corpus. It searches for the last tokens of a sequence's text, in the text
 * itself (where = "text") or in the rest ("rest"): the policy's earlier outputs and the files of --corpus.
 *
 *   corpus:longest(seq, where[, most]) -> m               the largest m such that the last m tokens occur there
 *   corpus:places(seq, where, m[, most]) -> places, n     a list of at most `most` of the n places where they occur
 *   corpus:token(seq, place) -> token | nil               the token at a place; nil: that text has ended
 *
 * A place is an integer; the next place in the same text is place + 1. Places of the sequence's text are those of
 * seq:token. */
#include "box/corpus_object.h"
#include "box/handle.h"
#include "box/object.h"
#include "lookup/match.h"

#include <lauxlib.h>
#include <string.h>

#define CORPUS_TYPE "corpus"
#define PLACES 64        /* default of `most` */
#define PLACES_MOST 1024 /* maximum of `most` */
#define PART_SHIFT 32    /* a place in the rest: (number of its part, from 1) << 32 | index in the part, from 0 */

typedef struct {
  const dtl_corpus *files; /* or NULL */
  const corpus_outputs *earlier;
} corpus_object;

typedef struct {
  const corpus_object *corpus;
  const int32_t *text;
  int length; /* tokens of the text */
  bool own;   /* search in the text itself, not in the rest */
} question;

/* Part i of the rest: the files come first, then earlier outputs. */
static const suffixes *part_of(const corpus_object *c, int i) {
  if (i == 0) return c->files ? &c->files->index : NULL;
  return i <= c->earlier->n ? &c->earlier->part[i - 1] : NULL;
}

static question ask(lua_State *L, const char *who, bool where) {
  const corpus_object *c = luaL_testudata(L, 1, CORPUS_TYPE);
  box_look(L);
  if (!c) luaL_error(L, "%s: not called as a method of a corpus", who);
  const dtl_run *run = handle_run_at(L, 2, handle_seq, who);
  question q = {
      .corpus = c, .text = dt_seq_tokens(run->session, run->seq), .length = dt_seq_length(run->session, run->seq)};
  if (!where) return q;
  const char *name = lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : luaL_typename(L, 3);
  q.own = strcmp(name, "text") == 0;
  if (!q.own && strcmp(name, "rest") != 0) luaL_error(L, "%s: where must be \"text\" or \"rest\", not %s", who, name);
  return q;
}

static int bounded(lua_State *L, int i, const char *who, const char *what, int most) {
  lua_Integer n = object_integer(L, i, who, what);
  if (n < 1 || n > most) luaL_error(L, "%s: %s = %I is out of range: 1..%d", who, what, (LUAI_UACINT)n, most);
  return (int)n;
}

static int corpus_longest(lua_State *L) {
  static const char who[] = "corpus:longest";
  question q = ask(L, who, true);
  int most = lua_isnoneornil(L, 4) ? SUFFIXES_MOST : bounded(L, 4, who, "most", SUFFIXES_MOST), longest = 0;
  if (q.own) {
    match_find_end(q.text, q.length, most, &longest);
  } else {
    for (int i = 0; i <= q.corpus->earlier->n; i++) {
      const suffixes *s = part_of(q.corpus, i);
      if (!s) continue;
      suffixes_match match = suffixes_longest(s, q.text, (size_t)q.length, most);
      if (match.length > longest) longest = match.length;
    }
  }
  lua_pushinteger(L, longest);
  return 1;
}

/* Lists places in the text itself, the latest first. The end of the text itself is one of them. */
static lua_Integer own_places(lua_State *L, const question *q, int m, int most) {
  lua_Integer n = 0;
  for (int place = q->length - 1; place >= m - 1; place--) {
    if (match_common(q->text, q->length, place, m) < m) continue;
    if (++n > most) continue;
    lua_pushinteger(L, place + 1);
    lua_rawseti(L, -2, n);
  }
  return n;
}

/* Lists places in the rest. If there are too many, it takes them at equal distances in the sorted order. */
static lua_Integer other_places(lua_State *L, const question *q, int m, int most) {
  suffixes_match match[1 + CORPUS_PARTS] = {0};
  lua_Integer n = 0, listed = 0, seen = 0;
  int parts = 1 + q->corpus->earlier->n;
  for (int i = 0; i < parts; i++) {
    const suffixes *s = part_of(q->corpus, i);
    if (s) match[i] = suffixes_places(s, q->text, (size_t)q->length, m);
    n += match[i].to - match[i].from;
  }
  lua_Integer wanted = n < most ? n : most;
  for (int i = 0; i < parts; i++) {
    uint32_t count = match[i].to - match[i].from;
    for (; listed < wanted && listed * n / wanted < seen + count; listed++) {
      uint32_t at = match[i].from + (uint32_t)(listed * n / wanted - seen);
      lua_pushinteger(L, ((lua_Integer)(i + 1) << PART_SHIFT) + part_of(q->corpus, i)->order[at]);
      lua_rawseti(L, -2, listed + 1);
    }
    seen += count;
  }
  return n;
}

static int corpus_places(lua_State *L) {
  static const char who[] = "corpus:places";
  question q = ask(L, who, true);
  int m = bounded(L, 4, who, "m", SUFFIXES_MOST);
  int most = lua_isnoneornil(L, 5) ? PLACES : bounded(L, 5, who, "most", PLACES_MOST);
  lua_newtable(L);
  lua_Integer n = m > q.length ? 0 : q.own ? own_places(L, &q, m, most) : other_places(L, &q, m, most);
  lua_pushinteger(L, n);
  return 2;
}

static int corpus_token(lua_State *L) {
  static const char who[] = "corpus:token";
  question q = ask(L, who, false);
  lua_Integer place = object_integer(L, 3, who, "place"), part = place >> PART_SHIFT;
  int32_t token = SUFFIXES_END;
  if (part == 0 && place >= 1 && place <= q.length) token = q.text[place - 1];
  if (part >= 1 && part <= 1 + CORPUS_PARTS) {
    const suffixes *s = part_of(q.corpus, (int)part - 1);
    lua_Integer at = place - (part << PART_SHIFT);
    if (s && at < s->n) token = s->token[at];
  }
  if (token == SUFFIXES_END)
    lua_pushnil(L);
  else
    lua_pushinteger(L, token);
  return 1;
}

void box_corpus_push(lua_State *L, const dtl_corpus *files, const corpus_outputs *earlier) {
  static const luaL_Reg methods[] = {
      {"longest", corpus_longest}, {"places", corpus_places}, {"token", corpus_token}, {NULL, NULL}};
  corpus_object *object = lua_newuserdatauv(L, sizeof *object, 0);
  *object = (corpus_object){.files = files, .earlier = earlier};
  object_make_type(L, CORPUS_TYPE, methods);
}
