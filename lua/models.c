/* Which models to load: see dtl_resolve_models. */
#include "hub.h"

#include <stdlib.h>
#include <string.h>

static const char *from_environment(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static char *bundled(const char *folder, dtl_error *err) {
  dt_error engine;
  char *path;
  if (dt_find(folder, &path, &engine)) dtl_fail_engine(err, &engine);
  return path;
}

/* *draft is NULL where none is wanted, or only a target was named. */
static bool choose(const char *target_option, const char *draft_option, bool wants_draft, char **target, char **draft,
                   dtl_error *err) {
  if (!target_option) target_option = from_environment("DTRUN_TARGET");
  if (!draft_option) draft_option = from_environment("DTRUN_DRAFT");
  if (target_option && !draft_option) wants_draft = false; /* the bundled draft is the bundled target's */
  dtl_fail(err, DTL_INPUT, "the bundled pair is not found (set DTRUN_HOME): name a model folder with --target DIR");
  *draft = NULL;
  *target = target_option ? hub_path(target_option, err) : bundled("models/mini-target", err);
  if (*target && wants_draft) *draft = draft_option ? hub_path(draft_option, err) : bundled("models/mini-draft", err);
  if (*target && (*draft || !wants_draft)) return true;
  free(*target);
  *target = NULL;
  return false;
}

bool dtl_resolve_models(const char *target_option, const char *draft_option, dtl_need need, char **target, char **draft,
                        dtl_error *err) {
  if (!choose(target_option, draft_option, need != DTL_NO_DRAFT, target, draft, err)) return false;
  if (*draft || need != DTL_NEEDS_DRAFT) return true;
  dt_error engine;
  if (dt_model_look(*target, &engine))
    dtl_fail_engine(err, &engine);
  else
    dtl_fail(err, DTL_INPUT, "the policy needs a draft model: give --draft DIR");
  free(*target);
  *target = NULL;
  return false;
}
