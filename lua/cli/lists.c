/* Prints lists and the help of policies: see lists.h. */
#include "cli/lists.h"

#include "cli/complain.h"
#include "cli/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 200 /* maximum number of bytes of a name or value */

/* Replaces control characters, since a policy's texts may contain any bytes. */
static const char *clean(char *out, const char *text) {
  dtl_clean(out, SHOWN, text, strlen(text));
  return out;
}

int print_policy_help(const cli_options *o) {
  dtl_policy *policy;
  dt_error err;
  dtl_policy_options po = job_policy(o, NULL);
  if (dtl_policy_open(&po, &policy, &err)) return complain_of(&err);
  const dtl_policy_info *info = dtl_policy_describe(policy);
  printf("%s: %s\n%s\n", info->name, info->doc, info->path);
  if (info->n_params) puts("\nparameters, --set NAME=VALUE:");
  for (int i = 0; i < info->n_params; i++) {
    const dtl_param *p = &info->params[i];
    char name[SHOWN], value[SHOWN];
    printf("  %-12s %-12s  %-8s %s", clean(name, p->name), clean(value, p->value ? p->value : "nil"), p->type, p->doc);
    printf(*p->range ? " (%s)\n" : "\n", p->range);
  }
  if (info->n_params) fputs("\npresets, --preset NAME:", stdout);
  for (int i = 0; i < info->n_presets; i++) {
    char name[SHOWN];
    printf(" %s", clean(name, info->presets[i]));
  }
  if (info->n_params) puts(" tuned (for one pair and machine, by dtrun run tune)");
  dtl_policy_close(policy);
  return finish_output(0);
}

/* Prints the line of a file; if a policy has an error, its line shows it. */
static dt_status print_policy_line(const char *name, int width, dt_error *err) {
  dtl_policy *policy;
  dt_status status = dtl_policy_open(&(dtl_policy_options){.policy = name}, &policy, err);
  if (status && status_of(err) == EXIT_ENGINE) return status;
  if (status) {
    printf("  %-*s error: %s\n", width, name, err->message);
  } else {
    printf("  %-*s %s\n", width, name, dtl_policy_describe(policy)->doc);
    dtl_policy_close(policy);
  }
  return DT_OK;
}

/* Prints the line of a driver; its description is the comment at the beginning of the file. */
static dt_status print_driver_line(const char *name, int width, dt_error *err) {
  char line[256] = "", relative[300], *path;
  snprintf(relative, sizeof relative, "scripts/%s.lua", name);
  errno = 0;
  FILE *file = !dt_find(relative, &path, NULL) && path ? fopen(path, "r") : NULL;
  bool ok = file || errno != ENOMEM;
  free(path);
  while (file && fgets(line, sizeof line, file) && strncmp(line, "#!", 2) == 0) line[0] = '\0';
  if (file) fclose(file);
  line[strcspn(line, "\n")] = '\0';
  if (ok) printf("  %-*s %s\n", width, name, strncmp(line, "--", 2) == 0 ? line + strspn(line, "- ") : "");
  return ok ? DT_OK : dt_fail(err, DT_ENOMEM, "out of memory: the list of drivers");
}

static dt_status list_installed(const char *folder, dt_status (*print_line)(const char *name, int width, dt_error *err),
                                dt_error *err) {
  int n, width = 0;
  char **names;
  dt_status status = dtl_installed(folder, &names, &n, err);
  if (status) return status;
  for (int i = 0; i < n; i++)
    if ((int)strlen(names[i]) > width) width = (int)strlen(names[i]);
  for (int i = 0; i < n; i++) {
    if (!status) status = print_line(names[i], width, err);
    free(names[i]);
  }
  free(names);
  return status;
}

int print_lists(void) {
  dt_error err;
  puts("policies, dtrun NAME:");
  dt_status status = list_installed("policies", print_policy_line, &err);
  if (!status) puts("drivers, dtrun run NAME:");
  if (!status) status = list_installed("scripts", print_driver_line, &err);
  return finish_output(status ? complain_of(&err) : 0);
}
