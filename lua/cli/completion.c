/* Completion for shells: see completion.h. */
#include "cli/completion.h"

#include "cli/complain.h"
#include "cli/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char **words; /* [n] words before the word to complete */
  int n;
  const char *typed;
} asked;

/* Prints a candidate if it begins with the typed text. */
static void offer(const asked *a, const char *word, const char *help) {
  char clean[256];
  if (strncmp(word, a->typed, strlen(a->typed)) != 0) return;
  dtl_clean(clean, sizeof clean, help, strlen(help));
  printf("%s\t%s\n", word, clean);
}

static void offer_all(const asked *a, const char *const *words, int n) {
  for (int i = 0; i < n; i++) offer(a, words[i], "");
}

static void offer_installed(const asked *a, const char *folder) {
  char **names;
  int n;
  dt_error err;
  if (dtl_installed(folder, &names, &n, &err)) return;
  for (int i = 0; i < n; i++) {
    dtl_policy *policy = NULL;
    bool described =
        strcmp(folder, "policies") == 0 && !dtl_policy_open(&(dtl_policy_options){.policy = names[i]}, &policy, &err);
    offer(a, names[i], described ? dtl_policy_describe(policy)->doc : "");
    dtl_policy_close(policy);
    free(names[i]);
  }
  free(names);
}

/* Returns the option whose value is completed, or NULL. */
static const option *open_option(const asked *a) {
  const char *last = a->n ? a->words[a->n - 1] : "";
  const option *o = *last == '-' ? option_find(last, strlen(last)) : NULL;
  return o && o->argument ? o : NULL;
}

/* Opens the policy that the line names; NULL: there is none, or it does not open. */
static dtl_policy *named_policy(const asked *a) {
  dtl_policy *policy;
  dt_error err;
  for (int i = 0; i < a->n; i++) {
    const option *o = *a->words[i] == '-' ? option_find(a->words[i], strlen(a->words[i])) : NULL;
    if (o && o->argument) i++;
    if (*a->words[i] == '-' || o || strcmp(a->words[i], "chat") == 0 || strcmp(a->words[i], "serve") == 0) continue;
    if (cli_is_model(a->words[i], "policies")) continue;
    return dtl_policy_open(&(dtl_policy_options){.policy = a->words[i]}, &policy, &err) ? NULL : policy;
  }
  return NULL;
}

/* Offers NAME= for the policy's parameters, completed by their values if there are few. */
static void offer_settings(const asked *a) {
  static const char *const truths[] = {"true", "false"};
  dtl_policy *policy = named_policy(a);
  const dtl_policy_info *info = policy ? dtl_policy_describe(policy) : NULL;
  for (int i = 0; info && i < info->n_params; i++) {
    const dtl_param *p = &info->params[i];
    char word[256];
    const bool boolean = strcmp(p->type, "boolean") == 0;
    const char *const *values = boolean ? truths : p->one_of;
    int n = boolean ? 2 : p->n_one_of;
    snprintf(word, sizeof word, "%s=", p->name);
    if (strncmp(a->typed, word, strlen(word)) != 0) offer(a, word, p->doc);
    for (int k = 0; k < n && strncmp(a->typed, word, strlen(word)) == 0; k++) {
      char value[512];
      snprintf(value, sizeof value, "%s%s", word, values[k]);
      offer(a, value, "");
    }
  }
  dtl_policy_close(policy);
}

static void offer_presets(const asked *a) {
  dtl_policy *policy = named_policy(a);
  if (policy) offer_all(a, dtl_policy_describe(policy)->presets, dtl_policy_describe(policy)->n_presets);
  dtl_policy_close(policy);
  offer(a, DTL_TUNED, "found by dtrun run tune");
}

static void offer_models(const asked *a, bool removable) {
  dtl_model *models;
  dt_error err;
  int n;
  if (dtl_models(&models, &n, &err)) return;
  for (int i = 0; i < n; i++)
    if (models[i].removable || !removable) offer(a, models[i].name, models[i].kind);
  dtl_models_free(models, n);
}

/* Offers the words of a list, which are separated by blanks. */
static void offer_words(const asked *a, const char *words) {
  char word[40];
  for (size_t n; words && (n = strcspn(words, " ")); words += n + strspn(words + n, " ")) {
    snprintf(word, sizeof word, "%.*s", (int)n, words);
    offer(a, word, "");
  }
}

static void offer_value(const asked *a, const option *o) {
  if (o->kind == SETTING)
    offer_settings(a);
  else if (o->kind == STRING && o->field == offsetof(cli_options, preset))
    offer_presets(a);
  else if (o->kind == STRING && o->field == offsetof(cli_options, compare))
    offer_installed(a, "policies");
  else if (o->request && (strcmp(o->request->name, "target") == 0 || strcmp(o->request->name, "draft") == 0))
    offer_models(a, false);
  else if (o->request)
    offer_words(a, o->request->values);
}

static void offer_options(const asked *a) {
  char name[40];
  for (int i = 0; option_at(i); i++)
    for (int k = 0; option_name(option_at(i), k, name, sizeof name); k++) offer(a, name, option_at(i)->help);
}

static void offer_commands(const asked *a) {
  offer(a, "chat", "a conversation at the terminal");
  offer(a, "serve", "a server for programs and browsers");
  offer(a, "run", "run a driver");
  offer(a, "pull", "download a model");
  offer(a, "ls", "list the models on this machine");
  offer(a, "rm", "remove a pulled model");
  offer(a, "doctor", "report on this machine");
}

/* Offers words after pull, ls and rm. False: the first word is none of these. */
static bool offer_of_models(const asked *a) {
  const char *word = a->n ? a->words[0] : "";
  dt_error err;
  if (strcmp(word, "rm") == 0) {
    offer(a, "-y", "without asking");
    offer_models(a, true);
  } else if (strcmp(word, "ls") == 0) {
    offer(a, "--json", "as JSON");
  } else if (strcmp(word, "pull") == 0) {
    char *script, *folder, *names, *rest;
    if (dtl_named_model("", &script, &folder, &names, &err)) return true;
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) offer(a, name, "");
    free(script), free(folder), free(names);
  } else {
    return false;
  }
  return true;
}

int complete(int n, char **words) {
  asked a = {.words = words, .n = n > 0 ? n - 1 : 0, .typed = n > 0 ? words[n - 1] : ""};
  if (offer_of_models(&a)) return finish_output(0);
  bool runs = a.n > 0 && strcmp(words[0], "run") == 0,
       talks = a.n > 0 && (strcmp(words[0], "chat") == 0 || strcmp(words[0], "serve") == 0);
  const option *open = runs ? NULL : open_option(&a);
  dtl_policy *named = runs || open ? NULL : named_policy(&a);
  if (runs && a.n == 1)
    offer_installed(&a, "scripts");
  else if (open)
    offer_value(&a, open);
  else if (!runs && *a.typed == '-')
    offer_options(&a);
  else if (!runs && !named) {
    offer_installed(&a, "policies");
    offer_models(&a, false);
    if (!talks) offer_commands(&a);
  }
  dtl_policy_close(named);
  return finish_output(0);
}
