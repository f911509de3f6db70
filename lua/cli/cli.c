/* Parses the command line: see cli.h. */
#include "cli/cli.h"

#include "cli/options.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(name) offsetof(cli_options, name)

static dt_status parse_number(const option *o, const char *name, const char *value, int *out, dt_error *err) {
  char *end;
  errno = 0;
  long n = strtol(value, &end, 10);
  bool whole = end != value && !*end && errno == 0;
  if (whole && ((n >= 1 && n <= o->most) || (n == -1 && o->also))) {
    *out = (int)n;
    return DT_OK;
  }
  const char *also = o->also ? ", or -1" : "";
  if (o->most == INT_MAX)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number, 1 or more%s", name, value, also);
  return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from 1 to %d%s", name, value, o->most, also);
}

static dt_status parse_real(const option *o, const char *name, const char *value, float *out, dt_error *err) {
  char *end;
  errno = 0;
  float x = strtof(value, &end);
  if ((x > 0 && x < FLT_MIN) || (x == 0 && errno == ERANGE))
    return dt_fail(err, DT_EINPUT, "%s '%.60s': not 0, but less than %.3g, which numbers here begin with", name, value,
                   (double)FLT_MIN);
  if (end == value || *end || !(x > 0 || (o->also && x == 0)) || x > (float)o->most)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a number %s 0, at most %d", name, value,
                   o->also ? "of at least" : "above", o->most);
  *out = x;
  return DT_OK;
}

static dt_status parse_count(const option *o, const char *name, const char *value, int *out, dt_error *err) {
  char *end;
  errno = 0;
  long n = strtol(value, &end, 10);
  if (end == value || *end || errno || n < 0 || n > o->most)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from 0 to %d", name, value, o->most);
  *out = (int)n + 1;
  return DT_OK;
}

static dt_status parse_penalty(const option *o, const char *name, const char *value, float *out, dt_error *err) {
  char *end;
  float x = strtof(value, &end);
  if (end == value || *end || !(x >= -(float)o->most && x <= (float)o->most))
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a number from -%d to %d", name, value, o->most, o->most);
  *out = x;
  return DT_OK;
}

static dt_status parse_seed(const char *name, const char *value, uint64_t *out, dt_error *err) {
  char *end;
  errno = 0;
  unsigned long long n = strtoull(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno)
    return dt_fail(err, DT_EINPUT, "%s '%.60s': expected a whole number from 0 to 2^64 - 1", name, value);
  *out = n;
  return DT_OK;
}

/* Whether a text is what browsers send as an Origin, or stands for all of these. */
static bool is_origin(const char *text) {
  const char *host = strstr(text, "://");
  return strcmp(text, "*") == 0 || (host && host > text && host[3] && !strpbrk(host + 3, "/ "));
}

/* Stores the value of an option (NULL for a flag) that was given as `name`. */
static dt_status store(const option *o, const char *name, char *value, cli_options *out, dt_error *err) {
  void *field = (char *)out + o->field;
  switch (o->kind) {
  case FLAG: *(bool *)field = true; break;
  case STRING:
    if (field == &out->compare && out->compare)
      return dt_fail(err, DT_EINPUT, "--compare is given twice: the policy is compared with one other");
    if (field == &out->draft && *value && !value[strspn(value, "0123456789")])
      return dt_fail(err, DT_EINPUT, "--draft %s: expected a model (did you mean a parameter, as in --set K=%s?)",
                     value, value);
    if (field == &out->costs && strcmp(value, "table") && strcmp(value, "learn"))
      return dt_fail(err, DT_EINPUT, "--costs %.60s: expected table or learn", value);
    *(const char **)field = value;
    break;
  case NUMBER: return parse_number(o, name, value, field, err);
  case COUNT: return parse_count(o, name, value, field, err);
  case PENALTY: return parse_penalty(o, name, value, field, err);
  case REAL: return parse_real(o, name, value, field, err);
  case SEED: return parse_seed(name, value, field, err);
  case STOP:
    if (!*value) return dt_fail(err, DT_EINPUT, "%s: expected a text that is not empty", name);
    out->stop[out->n_stop++] = value;
    break;
  case BIAS: out->biases[out->n_biases++] = value; break;
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

/* Whether an option suits other policies too, and does not concern the outputs of this run. */
static bool suits_others(const option *o) {
  static const size_t own[] = {FIELD(preset), FIELD(compare), FIELD(rounds),  FIELD(json),
                               FIELD(trace),  FIELD(quiet),   FIELD(verbose), FIELD(explain)};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (o->field == own[i]) return false;
  return o->kind != SETTING;
}

/* The length of an option's name in an argument: up to an '=' behind a long one. */
static size_t name_length(const char *arg) { return strncmp(arg, "--", 2) == 0 ? strcspn(arg, "=") : strlen(arg); }

/* Parses one option and its value, which may be the next argument; *used counts the arguments. */
static dt_status parse_option(char **argv, int left, cli_options *out, int *used, dt_error *err) {
  char *arg = argv[0];
  size_t n = name_length(arg);
  const option *o = option_find(arg, n);
  if (!o) return option_fail(arg, n, err);

  char name[32], *value = NULL;
  snprintf(name, sizeof name, "%.*s", (int)n, arg);
  *used = 1;
  if (o->kind == FLAG) {
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

/* Whether a word names a Lua file: a path, or one that is installed in that folder. */
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
  *out = (cli_options){0};
  out->settings = calloc((size_t)argc + 1, sizeof *out->settings); /* argc bounds the repetitions of an option */
  out->stop = calloc((size_t)argc + 1, sizeof *out->stop);
  out->biases = calloc((size_t)argc + 1, sizeof *out->biases);
  out->files = calloc((size_t)argc + 1, sizeof *out->files);
  out->texts = calloc((size_t)argc + 1, sizeof *out->texts);
  out->common = calloc((size_t)argc + 1, sizeof *out->common);
  out->corpus = calloc((size_t)argc + 1, sizeof *out->corpus);
  out->origins = calloc((size_t)argc + 1, sizeof *out->origins);
  out->served = calloc((size_t)argc + 1, sizeof *out->served);
  if (!out->origins || !out->served || !out->settings || !out->stop || !out->biases || !out->files || !out->texts ||
      !out->common || !out->corpus)
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
                     "unexpected argument '%.100s': the policy is '%.100s', a prompt is given by --prompt or --text",
                     arg, out->policy);
    } else {
      out->policy = arg;
    }
  }
  if (out->model && out->target)
    return dt_fail(err, DT_EINPUT, "two targets: '%.100s', and '%.100s' after --target", out->model, out->target);
  if (out->model) out->target = out->model;
  return DT_OK;
}

/* ---- between runs ------------------------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  size_t field;
} settable[] = {{"temp", FIELD(sampling.temp)},
                {"top_k", FIELD(sampling.top_k)},
                {"top_p", FIELD(sampling.top_p)},
                {"min_p", FIELD(sampling.min_p)},
                {"seed", FIELD(sampling.seed)},
                {"tokens", FIELD(tokens)},
                {"repeat_penalty", FIELD(shifts.repeat)},
                {"presence_penalty", FIELD(shifts.presence)},
                {"frequency_penalty", FIELD(shifts.frequency)}};
#define N_SETTABLE (sizeof settable / sizeof *settable)

const char *cli_settable(int i) { return i < (int)N_SETTABLE ? settable[i].name : NULL; }

/* The option with this name, whichever of its names it is; NULL: none, or it cannot be set. */
static const option *settable_option(const char *name) {
  char arg[40];
  int n = snprintf(arg, sizeof arg, "--%s", name);
  const option *o = n < (int)sizeof arg ? option_find(arg, (size_t)n) : NULL;
  for (size_t i = 0; o && i < N_SETTABLE; i++)
    if (o->field == settable[i].field) return o;
  return NULL;
}

bool cli_can_set(const char *name) { return settable_option(name) != NULL; }

dt_status cli_set(cli_options *o, const char *name, const char *value, dt_error *err) {
  return store(settable_option(name), name, (char *)value, o, err);
}

void cli_free(cli_options *o) {
  free(o->settings);
  free(o->stop);
  free(o->biases);
  free(o->files);
  free(o->texts);
  free(o->common);
  free(o->corpus);
  free(o->origins);
  free(o->served);
}
