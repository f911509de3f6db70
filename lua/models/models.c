/* Which models to load: see dtl_resolve_models. */
#include "models/models.h"

#include "models/hub.h"

#include <stdlib.h>
#include <string.h>

static const char *from_environment(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static char *bundled(const char *folder, dt_error *err) {
  char *path;
  dt_find(folder, &path, err);
  return path;
}

/* The draft for that target: named, the bundled target's own, or found; NULL with *status for a name that is none. */
static char *choose_draft(const char *target_option, const char *target, const char *named, found_kind kind,
                          bool *found, bool *ok, dt_error *err) {
  char *draft = named           ? hub_path(named, err)
                : target_option ? found_draft(target, kind)
                                : bundled("models/mini-draft", err);
  *found = draft && !named && target_option;
  *ok = draft || (!named && target_option);
  return draft;
}

static bool needs_one(const char *target, bool refused, dt_error *err) {
  if (dt_model_look(target, NULL, err)) return false;
  if (refused) return dtl_fail(err, DT_EINPUT, "the policy needs a draft model: give --draft DIR, not none");
  return dtl_fail(err, DT_EINPUT,
                  "the policy needs a draft model, and none lies here that says it is made for %s: give --draft DIR",
                  target);
}

bool models_resolve(const char *target_option, const char *draft_option, dtl_need need, found_kind kind, char **target,
                    char **draft, bool *found, dt_error *err) {
  if (need < DTL_NO_DRAFT || need > DTL_NEEDS_DRAFT)
    return dtl_fail(err, DT_EINPUT, "need: %d is out of range: %d..%d", need, DTL_NO_DRAFT, DTL_NEEDS_DRAFT);
  if (!target_option) target_option = from_environment("DTRUN_TARGET");
  if (!draft_option) draft_option = from_environment("DTRUN_DRAFT");
  bool none = draft_option && !strcmp(draft_option, "none"), ok = true;
  dtl_fail(err, DT_EINPUT, "the bundled pair is not found (set DTRUN_HOME): name a model folder with --target DIR");
  *draft = NULL, *found = false;
  *target = target_option ? hub_path(target_option, err) : bundled("models/mini-target", err);
  if (!*target) return false;
  if (need != DTL_NO_DRAFT && !none) *draft = choose_draft(target_option, *target, draft_option, kind, found, &ok, err);
  if (ok && need == DTL_NEEDS_DRAFT && !*draft) ok = needs_one(*target, none, err);
  if (ok) return true;
  free(*target);
  *target = NULL;
  return false;
}

bool dtl_resolve_models(const char *target_option, const char *draft_option, dtl_need need, char **target, char **draft,
                        dt_error *err) {
  bool found;
  NEED(target, "target");
  NEED(draft, "draft");
  return models_resolve(target_option, draft_option, need, FOUND_ANY, target, draft, &found, err);
}
