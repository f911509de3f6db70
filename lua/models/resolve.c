/* Decides which models to load: see dtl_resolve_models. */
#include "models/resolve.h"

#include "models/hub.h"

#include <stdlib.h>
#include <string.h>

static const char *from_environment(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* Finds a model of the bundled pair. */
static dt_status bundled(const char *folder, char **path, dt_error *err) {
  dt_status status = dt_find(folder, path, err);
  if (status || *path) return status;
  return dtl_fail(err, DT_EINPUT,
                  "the bundled pair was not found: name a model folder with --target DIR, or set DTRUN_HOME");
}

static bool is_named(const char *draft) { return draft && strcmp(draft, "none"); }

dt_status models_draft(const char *name, char **draft, dt_error *err) {
  *draft = NULL;
  if (!is_named(name)) return DT_OK;
  if (!dt_draft_is_own(name)) return hub_path(name, draft, err);
  *draft = strdup(name);
  return *draft ? DT_OK : dtl_fail_memory(err, "the draft's name");
}

/* Finds the draft for a target: the named one, the one of the bundled target, or one that is searched for; *draft is
 * NULL if there is none. */
static dt_status choose_draft(const char *target_option, const char *target, const char *named, found_kind kind,
                              char **draft, bool *found, dt_error *err) {
  if (named) return models_draft(named, draft, err);
  if (!target_option) return bundled("models/mini-draft", draft, err);
  *draft = found_draft(target, kind);
  *found = *draft;
  return DT_OK;
}

static dt_status needs_one(const char *target, bool refused, dt_error *err) {
  dt_status status = dt_model_look(target, NULL, err);
  if (status) return status;
  if (refused)
    return dtl_fail(err, DT_EINPUT, "the policy needs a draft model: give --draft DIR instead of --draft none");
  return dtl_fail(err, DT_EINPUT,
                  "the policy needs a draft model, and none was found here that is made for %s: give --draft DIR",
                  target);
}

dt_status models_resolve(const char *target_option, const char *draft_option, dtl_need need, found_kind kind,
                         char **target, char **draft, bool *found, dt_error *err) {
  if (need < DTL_NO_DRAFT || need > DTL_NEEDS_DRAFT)
    return dtl_fail(err, DT_EINPUT, "need: %d is out of range: %d..%d", need, DTL_NO_DRAFT, DTL_NEEDS_DRAFT);
  if (!target_option) target_option = from_environment("DTRUN_TARGET");
  if (!draft_option) draft_option = from_environment("DTRUN_DRAFT");
  bool none = draft_option && !is_named(draft_option);
  *draft = NULL, *found = false;
  dt_status status = target_option ? hub_path(target_option, target, err) : bundled("models/mini-target", target, err);
  if (status) return status;
  if (need != DTL_NO_DRAFT && !none)
    status = choose_draft(target_option, *target, draft_option, kind, draft, found, err);
  if (!status && need == DTL_NEEDS_DRAFT && !*draft) status = needs_one(*target, none, err);
  if (!status) return DT_OK;
  free(*target);
  *target = NULL;
  return status;
}

dt_status dtl_resolve_models(const char *target_option, const char *draft_option, dtl_need need, char **target,
                             char **draft, dt_error *err) {
  bool found;
  NEED(target, "target");
  NEED(draft, "draft");
  return models_resolve(target_option, draft_option, need, FOUND_ANY, target, draft, &found, err);
}
