/* The command line: generates under a policy, runs a driver, lists what is installed. Standard output carries generated
 * bytes only; every message is one line on standard error. Exit status: 0 done, 1 engine or device or disk, 2 usage or
 * input, 3 the policy, 130 Ctrl-C. */
#include "cli.h"
#include "complain.h"
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARM_UP_TOKENS 16
#define PLACES 8 /* of --parallel */

static volatile sig_atomic_t interrupted; /* set by the first Ctrl-C, and when standard output fails */

static void on_interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

/* The first Ctrl-C asks the run to end and the second one kills. Where it is ignored (a job in the background), it stays so. */
static void catch_interrupt(void) {
  struct sigaction old, action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
}

/* Nothing that was printed may be lost in silence. */
static int finish_output(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  return complain(status ? status : EXIT_ENGINE, "standard output: %s", strerror(errno));
}

/* ---- what a run needs ------------------------------------------------------------------------------------------------ */

typedef struct {
  prompt_list prompts;
  char *target, *draft;
  dtl_policy *policy, *other; /* other: of --compare, or NULL */
  dt_pair *pair;
  dtl_trace *trace; /* or NULL */
  dtl_costs costs;
  dtl_result result, compared;
  int output_error;  /* errno of a failed write to standard output, or 0 */
  bool open_line;    /* the last byte written was not a newline */
  const char *color; /* escape sequence around the text being shown; NULL: none */
} job;

static void job_free(job *j) {
  dtl_result_free(&j->result);
  dtl_result_free(&j->compared);
  dtl_trace_close(j->trace, NULL);
  dt_pair_close(j->pair);
  dtl_policy_close(j->policy);
  dtl_policy_close(j->other);
  prompts_free(&j->prompts);
  free(j->target);
  free(j->draft);
}

static int read_prompts(const cli_options *o, job *j) {
  dt_error err;
  dt_status status = o->text ? prompts_add_text(&j->prompts, o->text, &err) : DT_OK;
  for (int i = 0; i < o->n_files && !status; i++) status = prompts_add_file(&j->prompts, o->files[i], &err);
  if (o->prompts && !status) status = prompts_add_lines(&j->prompts, o->prompts, &err);
  return status ? complain_of_engine(&err) : 0;
}

static bool are_several(const cli_options *o, const job *j) { return o->prompts || j->prompts.n > 1; }

static int places(const cli_options *o, const job *j) {
  int most = o->parallel ? o->parallel : PLACES;
  return j->prompts.n < most ? j->prompts.n : most;
}

static bool wants_tuned(const cli_options *o) { return o->preset && strcmp(o->preset, DTL_TUNED) == 0; }

/* The preset `tuned` belongs to a pair. Before there is one the policy opens as it comes, to say what it uses. */
static dtl_policy_options policy_options(const cli_options *o, const dt_pair *pair) {
  if (wants_tuned(o) && !pair) return (dtl_policy_options){.policy = o->policy};
  return (dtl_policy_options){.policy = o->policy,
                              .preset = o->preset,
                              .pair = pair,
                              .settings = o->settings,
                              .n_settings = o->n_settings,
                              .seed = o->seed};
}

/* All that can be refused before a token is generated. */
static int prepare(const cli_options *o, job *j) {
  if (!o->n_files && !o->text && !o->prompts)
    return complain(EXIT_USAGE, "no prompt: give --prompt FILE, --text TEXT or --prompts FILE.jsonl");
  if (o->n_files && o->text) return complain(EXIT_USAGE, "two prompts: give --prompt or --text, not both");
  dt_error engine;
  if (o->json && report_check_path(o->json, &engine)) return complain_of_engine(&engine);

  dtl_error err;
  dtl_policy_options po = policy_options(o, NULL);
  if (!dtl_policy_open(&po, &j->policy, &err)) return complain_of(&err);
  if (o->compare && !dtl_policy_open(&(dtl_policy_options){.policy = o->compare, .seed = o->seed}, &j->other, &err))
    return complain_of(&err);
  int status = read_prompts(o, j);
  if (status) return status;
  if (are_several(o, j) && (o->trace || o->color))
    return complain(EXIT_USAGE, "%s shows one text: give one prompt", o->trace ? "--trace" : "--color");

  bool needs_draft =
      dtl_policy_describe(j->policy)->uses_draft || (j->other && dtl_policy_describe(j->other)->uses_draft);
  if (!dtl_resolve_models(o->target, o->draft, needs_draft, &j->target, &j->draft, &err)) return complain_of(&err);
  dt_pair_options pair = {.target = j->target,
                          .draft = j->draft,
                          .backend = o->backend,
                          .threads = o->threads,
                          .draft_dtype = o->draft_dtype,
                          .cache_dtype = o->cache_dtype};
  if (dt_pair_open(&pair, &j->pair, &engine)) return complain_of_engine(&engine);
  if (wants_tuned(o)) {
    dtl_policy_close(j->policy);
    j->policy = NULL;
    po = policy_options(o, j->pair);
    if (!dtl_policy_open(&po, &j->policy, &err)) return complain_of(&err);
  }
  return !o->trace || dtl_trace_open(o->trace, &j->trace, &err) ? 0 : complain_of(&err);
}

static bool uses_costs(const dtl_policy *policy) { return policy && dtl_policy_describe(policy)->uses_costs; }

/* What passes cost, for policies that ask. */
static int calibrate(const cli_options *o, job *j) {
  if (!uses_costs(j->policy) && !uses_costs(j->other)) return 0;
  dtl_calibration how = dtl_calibration_shown(&interrupted);
  how.context = o->context;
  how.batch = are_several(o, j) ? places(o, j) : 1;
  if (o->quiet) how.progress = NULL;
  dtl_error err;
  if (dtl_calibrate(j->pair, &how, &j->costs, &err)) return 0;
  return interrupted ? EXIT_INTERRUPTED : complain_of(&err);
}

/* ---- a run ------------------------------------------------------------------------------------------------------------ */

static void show_origin(void *user, dtl_origin origin) {
  static const char *const colors[] = {
      [DTL_DRAFTED] = "\033[32m", [DTL_BONUS] = "\033[36m", [DTL_CORRECTED] = "\033[33m"};
  ((job *)user)->color = colors[origin];
}

static void show_text(void *user, const char *bytes, size_t len) {
  job *j = user;
  if (len == 0 || j->output_error) return;
  if (j->color) fputs(j->color, stdout);
  bool written = fwrite(bytes, 1, len, stdout) == len;
  if (j->color) fputs("\033[0m", stdout);
  if (!written || fflush(stdout) != 0) {
    j->output_error = errno;
    interrupted = 1; /* nobody reads on */
    clearerr(stdout);
  }
  j->open_line = bytes[len - 1] != '\n';
}

/* Before two runs are compared: the first one alone would pay for cold caches, pages and threads. A failure is left to the
 * run itself. */
static void warm_up(const cli_options *o, const job *j, dtl_request request) {
  dtl_policy *policy;
  dtl_policy_options po = policy_options(o, j->pair);
  dtl_result result = {0};
  dtl_error err;
  if (!dtl_policy_open(&po, &policy, &err)) return;
  request.on_text = NULL, request.on_origin = NULL;
  if (request.seq.max_tokens < 0 || request.seq.max_tokens > WARM_UP_TOKENS) request.seq.max_tokens = WARM_UP_TOKENS;
  dtl_generate(j->pair, policy, &request, &result, &err);
  dtl_result_free(&result);
  dtl_policy_close(policy);
}

/* True when text and messages go to the same terminal or file, so that a message needs a new line. */
static bool outputs_meet(void) {
  struct stat out, err;
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
         out.st_ino == err.st_ino;
}

/* What all runs have in common. */
static dtl_request make_request(const cli_options *o, const job *j) {
  return (dtl_request){.text = j->prompts.list[0].text,
                       .text_len = j->prompts.list[0].len,
                       .context = o->context,
                       .costs = &j->costs,
                       .interrupt = &interrupted,
                       .seq = {.max_tokens = o->tokens,
                               .ignore_eos = o->ignore_eos,
                               .stop = o->stop,
                               .n_stop = o->n_stop,
                               .sampling = {o->seed, o->temp, o->top_k, o->top_p, o->min_p},
                               .uncoupled = o->uncoupled}};
}

static int run_policies(const cli_options *o, job *j) {
  bool json_only = o->json && strcmp(o->json, "-") == 0;
  dtl_request request = make_request(o, j);
  request.user = j;
  if (!json_only) request.on_text = show_text;
  if (o->color && !json_only) request.on_origin = show_origin;
  dtl_error err, other_err;
  if (j->other) warm_up(o, j, request);
  request.trace = j->trace;
  bool ok = dtl_generate(j->pair, j->policy, &request, &j->result, &err), other_ok = true;
  request.on_text = NULL, request.on_origin = NULL, request.trace = NULL;
  if (ok && j->other && !interrupted) other_ok = dtl_generate(j->pair, j->other, &request, &j->compared, &other_err);

  bool silent = o->quiet && ok && other_ok;
  if (j->open_line && !silent && outputs_meet()) fputc('\n', stderr);
  int status = ok ? 0 : complain_of(&err);
  if (ok && interrupted) status = EXIT_INTERRUPTED;
  if (j->output_error)
    status = complain(EXIT_ENGINE, "standard output: %s", strerror(j->output_error));
  else if (ok && !o->quiet)
    report_summary(&j->result);
  if (ok && o->verbose && !o->quiet) report_details(&j->result);
  if (!other_ok) status = complain_of(&other_err);

  dt_error engine;
  bool compared = j->other && ok && other_ok && !interrupted;
  if (compared && report_comparison(&j->result, &j->compared, o->quiet, &engine)) status = complain_of_engine(&engine);
  bool has_result = ok || err.kind == DTL_POLICY || err.kind == DTL_DEVICE;
  if (o->json && has_result && report_write(o->json, &j->result, compared ? &j->compared : NULL, &engine)) {
    int write_status = complain_of_engine(&engine);
    if (!status) status = write_status;
  }
  dtl_trace *trace = j->trace;
  j->trace = NULL;
  if (!dtl_trace_close(trace, &err)) {
    int write_status = complain_of(&err);
    if (!status) status = write_status;
  }
  return status;
}

/* ---- runs of several prompts ------------------------------------------------------------------------------------------- */

/* All prompts under one policy; their results are told to `results`. Returns the exit status. */
static int run_batch(const cli_options *o, const job *j, const dtl_policy_options *policy, several *results,
                     several_sum *sum) {
  dtl_request request = make_request(o, j);
  dtl_prompt *list = calloc((size_t)j->prompts.n, sizeof *list);
  if (!list) return complain(EXIT_ENGINE, "out of memory: the prompts");
  for (int i = 0; i < j->prompts.n; i++)
    list[i] = (dtl_prompt){.text = j->prompts.list[i].text, .len = j->prompts.list[i].len};
  dtl_batch batch = {.policy = policy,
                     .request = &request,
                     .prompts = list,
                     .n = j->prompts.n,
                     .places = places(o, j),
                     .done = several_done,
                     .user = results};
  dtl_error err;
  bool ok = dtl_generate_batch(j->pair, &batch, &err);
  free(list);
  int status = several_finish(results, sum);
  if (!ok && !sum->failed) status = complain_of(&err); /* else it was told with its sequence */
  return !status && interrupted ? EXIT_INTERRUPTED : status;
}

/* The same prompts under the policy of --compare, in silence. */
static int compare_batch(const cli_options *o, const job *j, const several *results, const several_sum *sum) {
  dtl_policy_options other = {.policy = o->compare, .seed = o->seed};
  several_options options = {.prompts = &j->prompts, .silent = true};
  several *compared;
  several_sum other_sum = {0};
  dt_error err;
  if (several_open(&options, &compared, &err)) return complain_of_engine(&err);
  int status = run_batch(o, j, &other, compared, &other_sum), differs = several_compare(results, compared);
  several_free(compared);
  if (status) return status;
  if (differs >= 0)
    return complain(EXIT_ENGINE, "the engine failed: %s and %s differ in prompt %s", o->policy, o->compare,
                    j->prompts.list[differs].name);
  if (!o->quiet) report_sums(dtl_policy_describe(j->policy)->name, sum, o->compare, &other_sum);
  return 0;
}

static int run_several(const cli_options *o, job *j) {
  several_options options = {.prompts = &j->prompts, .json = o->json, .quiet = o->quiet};
  dtl_policy_options policy = policy_options(o, j->pair);
  several *results;
  several_sum sum = {0};
  dt_error err;
  if (several_open(&options, &results, &err)) return complain_of_engine(&err);
  int status = run_batch(o, j, &policy, results, &sum);
  if (!o->quiet) report_sum(&sum, j->prompts.n, places(o, j));
  if (!status && o->compare) status = compare_batch(o, j, results, &sum);
  several_free(results);
  return status;
}

static int generate(const cli_options *o) {
  job j = {0};
  int status = prepare(o, &j);
  catch_interrupt();
  if (!status) status = calibrate(o, &j);
  if (!status) status = are_several(o, &j) ? run_several(o, &j) : run_policies(o, &j);
  job_free(&j);
  return status;
}

/* ---- help and lists --------------------------------------------------------------------------------------------------- */

static int print_policy_help(const cli_options *o) {
  dtl_policy *policy;
  dtl_error err;
  dtl_policy_options po = policy_options(o, NULL);
  if (!dtl_policy_open(&po, &policy, &err)) return complain_of(&err);
  const dtl_policy_info *info = dtl_policy_describe(policy);
  printf("%s: %s\n%s\n", info->name, info->doc, info->path);
  if (info->n_params) puts("\nparameters, --set NAME=VALUE:");
  for (int i = 0; i < info->n_params; i++) {
    const dtl_param *p = &info->params[i];
    printf("  %-12s %-12s  %-8s %s", p->name, p->value ? p->value : "nil", p->type, p->doc);
    printf(*p->range ? " (%s)\n" : "\n", p->range);
  }
  if (info->n_params) fputs("\npresets, --preset NAME:", stdout);
  for (int i = 0; i < info->n_presets; i++) printf(" %s", info->presets[i]);
  if (info->n_params) puts(" tuned (for one pair and machine, by dtrun run tune)");
  dtl_policy_close(policy);
  return finish_output(0);
}

static void print_policy_line(const char *path, const char *name) {
  dtl_policy *policy;
  dtl_error err;
  if (!dtl_policy_open(&(dtl_policy_options){.policy = path}, &policy, &err)) {
    printf("  %-14s error: %s\n", name, err.message);
    return;
  }
  printf("  %-14s %s\n", name, dtl_policy_describe(policy)->doc);
  dtl_policy_close(policy);
}

/* A driver's description is the comment that opens it. */
static void print_driver_line(const char *path, const char *name) {
  char line[256] = "";
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file) && strncmp(line, "#!", 2) == 0) line[0] = '\0';
  if (file) fclose(file);
  line[strcspn(line, "\n")] = '\0';
  printf("  %-14s %s\n", name, strncmp(line, "--", 2) == 0 ? line + strspn(line, "- ") : "");
}

static int is_lua(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return n > 4 && strcmp(entry->d_name + n - 4, ".lua") == 0;
}

/* One line for each script in `folder` of the homes; the one that a name stands for is the first found. */
static void list_scripts(const char *folder, void (*print_line)(const char *path, const char *name)) {
  int n;
  char **homes = dt_homes(&n);
  for (int h = 0; h < n; h++) {
    char path[PATH_MAX];
    struct dirent **entries = NULL;
    snprintf(path, sizeof path, "%s/%s", homes[h], folder);
    int found = scandir(path, &entries, is_lua, alphasort);
    for (int i = 0; i < found; i++) {
      char relative[PATH_MAX], *name = entries[i]->d_name;
      snprintf(relative, sizeof relative, "%s/%s", folder, name);
      char *first = dt_find(relative);
      bool is_first = first && strncmp(first, path, strlen(path)) == 0 && strcmp(first + strlen(path) + 1, name) == 0;
      name[strlen(name) - 4] = '\0';
      if (is_first) print_line(first, name);
      free(first);
      free(entries[i]);
    }
    if (found >= 0) free(entries);
  }
  for (int h = 0; h < n; h++) free(homes[h]);
  free(homes);
}

static int print_lists(void) {
  puts("policies, dtrun NAME:");
  list_scripts("policies", print_policy_line);
  puts("drivers, dtrun run NAME:");
  list_scripts("scripts", print_driver_line);
  return finish_output(0);
}

static int run_driver(int argc, char **argv) {
  if (argc < 1) return complain(EXIT_USAGE, "run: expected a driver, as in dtrun run SCRIPT; dtrun --list names them");
  catch_interrupt();
  return finish_output(dtl_run_driver(argv[0], argc - 1, argv + 1, &interrupted));
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "run") == 0) return run_driver(argc - 2, argv + 2);
  cli_options o;
  dt_error err;
  int status = 0;
  if (cli_parse(argc - 1, argv + 1, &o, &err)) {
    status = complain_of_engine(&err);
  } else if (o.help && o.policy) {
    status = print_policy_help(&o);
  } else if (o.help) {
    cli_help(stdout);
    status = finish_output(0);
  } else if (o.version) {
    printf("dtrun %s\n", dt_version());
    status = finish_output(0);
  } else if (o.list) {
    status = print_lists();
  } else if (!o.policy) {
    status = complain(EXIT_USAGE, "no policy: expected dtrun POLICY [options]; see dtrun --help and dtrun --list");
  } else {
    status = generate(&o);
  }
  cli_free(&o);
  return status;
}
