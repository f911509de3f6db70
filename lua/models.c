/* Which models to load: see dtl_resolve_models. */
#include "models.h"

#include <stdlib.h>
#include <string.h>

static const char *from_environment(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

bool models_choose(const char *target_option, const char *draft_option, char **target, char **draft, dtl_error *err) {
  if (!target_option) target_option = from_environment("DTRUN_TARGET");
  if (!draft_option) draft_option = from_environment("DTRUN_DRAFT");
  *target = target_option ? strdup(target_option) : dt_find("models/mini-target");
  *draft = draft_option ? strdup(draft_option) : target_option ? NULL : dt_find("models/mini-draft");
  if (*target && (*draft || target_option)) return true;
  free(*target), free(*draft);
  *target = *draft = NULL;
  return dtl_fail(err, DTL_INPUT,
                  "the bundled pair is not found (set DTRUN_HOME): name a model folder with --target DIR");
}

bool dtl_resolve_models(const char *target_option, const char *draft_option, bool needs_draft, char **target,
                        char **draft, dtl_error *err) {
  if (!models_choose(target_option, draft_option, target, draft, err)) return false;
  if (!needs_draft) {
    free(*draft);
    *draft = NULL;
  } else if (!*draft) {
    free(*target);
    *target = NULL;
    return dtl_fail(err, DTL_INPUT, "the policy needs a draft model: give --draft DIR");
  }
  return true;
}
