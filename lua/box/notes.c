/* Tags and logged numbers: see notes.h. They are few, so they are looked up in a list. */
#include "box/notes.h"

#include <math.h>
#include <string.h>

/* Names are written into JSON and tables unchanged. */
static const char *check_name(lua_State *L, int i, const char *who) {
  size_t len = 0;
  const char *name = lua_type(L, i) == LUA_TSTRING ? lua_tolstring(L, i, &len) : "";
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (len < 1 || len > DTL_NOTE_NAME || strspn(name, letters) != len)
    luaL_error(L, "%s: a name of 1 to %d letters, digits, '_', '-' or '.' is expected", who, DTL_NOTE_NAME);
  return name;
}

void notes_tag(lua_State *L, dtl_run *run, int node, int i, const char *who) {
  dtl_notes *notes = run->notes;
  const char *name = check_name(L, i, who);
  int k = 0;
  while (k < notes->n_tags && strcmp(notes->tag[k].name, name)) k++;
  if (k == DTL_NOTES) luaL_error(L, "%s: a run has at most %d tags", who, DTL_NOTES);
  if (k == notes->n_tags) strcpy(notes->tag[notes->n_tags++].name, name);
  run->tag_of[node] = (uint8_t)(k + 1);
}

void notes_log(lua_State *L, dtl_run *run, int i, double value, const char *who) {
  dtl_notes *notes = run->notes;
  const char *name = check_name(L, i, who);
  int k = 0;
  while (k < notes->n_logged && strcmp(notes->logged[k].name, name)) k++;
  if (k == DTL_NOTES) luaL_error(L, "%s: a run has at most %d names of numbers", who, DTL_NOTES);
  dtl_logged *at = &notes->logged[k];
  if (k == notes->n_logged) {
    *at = (dtl_logged){.least = value, .most = value};
    strcpy(at->name, name);
    notes->n_logged++;
  }
  at->n++, at->sum += value, at->last = value;
  at->least = fmin(at->least, value), at->most = fmax(at->most, value);
  run->is_new[k] = true;
}

const char *notes_tag_of(const dtl_run *run, int node) {
  return run->tag_of[node] ? run->notes->tag[run->tag_of[node] - 1].name : NULL;
}

void notes_committed(dtl_run *run) {
  const dt_tree *t = run->tree;
  for (int v = 1; v < t->nodes; v++) {
    if (!run->tag_of[v] || !t->kept[v]) continue;
    dtl_tag *tag = &run->notes->tag[run->tag_of[v] - 1];
    tag->verified++;
    if (t->verdict[v] < 0) continue;
    tag->decided++, tag->expected += exp((double)t->logp[v]), tag->accepted += t->verdict[v];
  }
  memset(run->is_new, 0, sizeof run->is_new);
}

void notes_drop(dtl_run *run) { memset(run->tag_of, 0, (size_t)run->tree->nodes); }
