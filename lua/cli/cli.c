/* Parses the command line: see cli.h. */
#include "cli/cli.h"

#include "cli/options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(name) offsetof(cli_options, name)

/* Reads a whole number from o->low to o->most. */
static dt_status parse_number(const option *o, const char *name, const char *value, int *out, dt_error *err) {
  char *end;
  errno = 0;
  long n = strtol(value, &end, 10);
  if (end == value || *end || errno || n < o->low || n > o->most)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from %d to %d", name, value, o->low, o->most);
  *out = (int)n;
  return DT_OK;
}

static dt_status parse_seconds(const char *name, const char *value, double *out, dt_error *err) {
  char *end;
  double x = strtod(value, &end);
  if (end == value || *end || !(x > 0 && x <= 1e6))
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a number of seconds above 0, at most 1000000", name, value);
  *out = x;
  return DT_OK;
}

/* Returns whether a text is an Origin as browsers send it, or "*", which means all of them. */
static bool is_origin(const char *text) {
  const char *host = strstr(text, "://");
  return strcmp(text, "*") == 0 || (host && host > text && host[3] && !strpbrk(host + 3, "/ "));
}

static dt_status store_field(const request_field *f, const char *name, const char *value, request_input *in,
                             dt_error *err) {
  if (f->kind == FIELD_FLAG) return request_flag(in, f, name, true, err);
  if (strcmp(f->name, "draft") == 0 && *value && !value[strspn(value, "0123456789")])
    return dt_fail(err, DT_EINPUT, "%s %s: expected a model (did you mean a parameter, as in --set K=%s?)", name, value,
                   value);
  const char *file = strcmp(f->name, "grammar") == 0       ? "--grammar-file"
                     : strcmp(f->name, "json_schema") == 0 ? "--json-schema-file"
                                                           : NULL;
  if (file && access(value, F_OK) == 0)
    return dt_fail(err, DT_EINPUT, "%s takes the text itself; to read it from a file, give %s %s", name, file, value);
  return request_text(in, f, name, value, err);
}

/* Adds a member to the JSON object of variables. A value that is not JSON is a text. */
static dt_status add_variable(cli_options *out, const char *name, char *value, dt_error *err) {
  char *equals = strchr(value, '=');
  if (!equals || equals == value)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected NAME=VALUE, as in --template-set enable_thinking=false", name,
                   value);
  char *member = strndup(value, (size_t)(equals - value));
  cJSON *all = out->variables ? cJSON_Parse(out->variables) : cJSON_CreateObject();
  cJSON *one = cJSON_ParseWithOpts(equals + 1, NULL, true);
  if (!one) one = cJSON_CreateString(equals + 1);
  if (member) cJSON_DeleteItemFromObjectCaseSensitive(all, member);
  char *printed = member && cJSON_AddItemToObject(all, member, one) ? cJSON_PrintUnformatted(all) : NULL;
  if (printed) cJSON_free(out->variables), out->variables = printed;
  cJSON_Delete(all);
  free(member);
  return printed ? DT_OK : dt_fail_memory(err, "the variables of the chat template", strlen(value));
}

/* Stores the value of an option (NULL for a flag); `name` is the name that was typed. */
static dt_status store(const option *o, const char *name, char *value, cli_options *out, dt_error *err) {
  void *field = (char *)out + o->field;
  switch (o->kind) {
  case FLAG: *(bool *)field = true; break;
  case STRING:
    if (field == &out->compare && out->compare)
      return dt_fail(err, DT_EINPUT, "--compare is given twice: the policy is compared with one other");
    *(const char **)field = value;
    break;
  case VARIABLE: return add_variable(out, name, value, err);
  case REQUEST: return store_field(o->request, name, value, &out->in, err);
  case NUMBER: return parse_number(o, name, value, field, err);
  case SECONDS: return parse_seconds(name, value, field, err);
  case PROMPT: out->files[out->n_files++] = value; break;
  case TEXT: out->texts[out->n_texts++] = value; break;
  case ORIGIN:
    if (!is_origin(value))
      return dt_fail(err, DT_EINPUT, "%s '%.60s': expected an origin, such as https://app.example:3000, or *", name,
                     value);
    out->origins[out->n_origins++] = value;
    break;
  case SERVED:
    if (!*value) return dt_fail(err, DT_EINPUT, "%s: expected a name that is not empty", name);
    out->served[out->n_served++] = value;
    break;
  case CORPUS: out->corpus[out->n_corpus++] = value; break;
  case SETTING: {
    char *equals = strchr(value, '=');
    if (!equals || equals == value)
      return dt_fail(err, DT_EINPUT, "%s '%.60s': expected NAME=VALUE, as in --set K=8", name, value);
    *equals = '\0';
    out->settings[out->n_settings++] = (dtl_setting){.name = value, .value = equals + 1};
    break;
  }
  }
  return DT_OK;
}

/* Returns whether an option makes sense with another policy and does not concern the output files of this run. */
static bool suits_others(const option *o) {
  if (o->kind == REQUEST) return true;
  static const size_t own[] = {FIELD(preset), FIELD(compare), FIELD(rounds),  FIELD(json),
                               FIELD(trace),  FIELD(quiet),   FIELD(verbose), FIELD(explain)};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (o->field == own[i]) return false;
  return o->kind != SETTING;
}

/* Returns the length of an option's name in an argument: a long name ends before an '='. */
static size_t name_length(const char *arg) { return strncmp(arg, "--", 2) == 0 ? strcspn(arg, "=") : strlen(arg); }

/* Parses one option and its value, which may be the next argument. *used: the number of arguments read. */
static dt_status parse_option(char **argv, int left, cli_options *out, int *used, dt_error *err) {
  char *arg = argv[0];
  size_t n = name_length(arg);
  const option *o = option_find(arg, n);
  if (!o) return option_fail(arg, n, err);

  char name[32], *value = NULL;
  snprintf(name, sizeof name, "%.*s", (int)n, arg);
  *used = 1;
  if (!o->argument) {
    if (arg[n]) return dt_fail(err, DT_EINPUT, "option %s takes no value", name);
  } else if (arg[n]) {
    value = arg + n + 1;
  } else {
    if (left > 1 && option_find(argv[1], name_length(argv[1])))
      return dt_fail(err, DT_EINPUT, "option %s needs a value, and not the option %s: %s %s", name, argv[1], name,
                     o->argument);
    if (left < 2) return dt_fail(err, DT_EINPUT, "option %s needs a value: %s %s", name, name, o->argument);
    value = argv[1];
    *used = 2;
  }
  for (int i = 0; suits_others(o) && i < *used; i++) out->common[out->n_common++] = argv[i];
  return store(o, name, value, out, err);
}

/* Returns whether a word names a Lua file: it is a path, or the name of a file that is installed in that folder. */
static bool is_lua(const char *word, const char *folder) {
  size_t n = strlen(word);
  char relative[300], *path = NULL;
  if (n > 4 && strcmp(word + n - 4, ".lua") == 0) return true;
  snprintf(relative, sizeof relative, "%s/%.200s.lua", folder, word);
  bool is = !dt_find(relative, &path, NULL) && path;
  free(path);
  return is;
}

bool cli_is_model(const char *argument, const char *folder) {
  size_t n = strlen(argument);
  char config[4096];
  if (n > 5 && strcmp(argument + n - 5, ".gguf") == 0) return true;
  snprintf(config, sizeof config, "%s/config.json", argument);
  return access(config, F_OK) == 0 || (!is_lua(argument, folder) && dtl_is_model_name(argument));
}

dt_status cli_parse(int argc, char **argv, cli_options *out, dt_error *err) {
  *out = (cli_options){.port = -1, .cache_ram = -1};
  out->settings = calloc((size_t)argc + 1, sizeof *out->settings); /* room for argc repetitions of an option */
  out->files = calloc((size_t)argc + 1, sizeof *out->files);
  out->texts = calloc((size_t)argc + 1, sizeof *out->texts);
  out->common = calloc((size_t)argc + 1, sizeof *out->common);
  out->corpus = calloc((size_t)argc + 1, sizeof *out->corpus);
  out->origins = calloc((size_t)argc + 1, sizeof *out->origins);
  out->served = calloc((size_t)argc + 1, sizeof *out->served);
  if (!out->origins || !out->served || !out->settings || !out->files || !out->texts || !out->common || !out->corpus)
    return dt_fail_memory(err, "the options", (size_t)argc * sizeof *out->settings);
  bool only_words = false; /* after "--" */
  for (int i = 0, used; i < argc; i += used) {
    used = 1;
    char *arg = argv[i];
    if (!only_words && strcmp(arg, "--") == 0) {
      only_words = true;
    } else if (!only_words && arg[0] == '-' && arg[1]) {
      dt_status status = parse_option(argv + i, argc - i, out, &used, err);
      if (status) return status;
    } else if (cli_is_model(arg, "policies")) {
      if (out->model) return dt_fail(err, DT_EINPUT, "two targets: '%.100s' and '%.100s'", out->model, arg);
      out->model = arg;
    } else if (out->policy) {
      return dt_fail(err, DT_EINPUT,
                     "unexpected argument '%.100s': the policy is '%.100s'; give a prompt with --prompt or --text", arg,
                     out->policy);
    } else {
      out->policy = arg;
    }
  }
  dtl_load_options *load = &out->in.load;
  if (out->model && load->target)
    return dt_fail(err, DT_EINPUT, "two targets: '%.100s', and '%.100s' after --target", out->model, load->target);
  if (out->model) load->target = out->model;
  return request_check(&out->in, err);
}

/* ---- between runs ------------------------------------------------------------------------------------------------ */

const request_field *cli_settable(const char *name) {
  char arg[40];
  int n = snprintf(arg, sizeof arg, "--%s", name);
  const option *o = n < (int)sizeof arg ? option_find(arg, (size_t)n) : NULL;
  return o && o->request && (o->request->where & IN_SET) ? o->request : NULL;
}

bool cli_given(const cli_options *options, const char *name) {
  const option *o = option_find(name, strlen(name));
  return o && o->request && request_given(&options->in, o->request);
}

void cli_free(cli_options *o) {
  free(o->settings);
  request_free(&o->in);
  free(o->files);
  free(o->texts);
  free(o->common);
  free(o->corpus);
  free(o->origins);
  free(o->served);
  cJSON_free(o->variables);
}
