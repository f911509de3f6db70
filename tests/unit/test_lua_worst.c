/* Every function that a policy can call, each with its worst argument (tests/lua/worst.txt). A row that would run for
 * ever is ended within a second of processor time after Ctrl-C, or within three by itself, and takes at most 32 MB, or
 * 64 MB if it leaves holes between what it stores. With the argument "long" every row runs until the box ends it, and
 * there is an init that never returns. */
#include "unit.h"

#include "dtrun_fake.h"

#include "box/handle.h"
#include "generate/stepper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 200
#define INTERRUPT_AFTER 200000 /* microseconds of processor time */
#define MEMORY_MAX (32L << 10) /* KiB */
#define HOLES_MAX (64L << 10)

static bool to_the_end;

typedef struct {
  char name[200];   /* as "string.rep", or several names */
  const char *code; /* init's part, "--", draft's part */
  int first, len;   /* init's part is len bytes from code[first] on */
} row;

static char *text;
static row rows[ROWS_MAX];
static int n_rows;

static void read_rows(void) {
  FILE *file = fopen(SOURCE_DIR "/tests/lua/worst.txt", "rb");
  assert_non_null(file);
  text = calloc(1, 1 << 16);
  assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
  fclose(file);
  for (char *at = strstr(text, "\n== "), *next; at; at = next) {
    next = strstr(at + 1, "\n== ");
    if (next) *next = '\0';
    row *r = &rows[n_rows++];
    assert_true(n_rows < ROWS_MAX);
    char *end = strchr(at + 1, '\n'), *half = strstr(end, "\n--\n");
    assert_non_null(half);
    snprintf(r->name, sizeof r->name, "%.*s", (int)(end - at - 4), at + 4);
    *half = '\0';
    r->code = end;
    r->first = (int)(half + 4 - end);
  }
  assert_true(n_rows > 50);
}

static char *source_of(const row *r) {
  bool batch = strncmp(r->name, "batch:", 6) == 0;
  char *source;
  assert_true(
      asprintf(
          &source,
          "local policy = require 'dt.policy'\n"
          "local P = policy.define { name = 'row', uses = { costs = true, target = 8, memory = true, corpus = true }, "
          "scope = '%s' }\n"
          "zeros, long = ('\\0'):rep(65536), ('0'):rep(65535) .. '1'\n"
          "function P:init() %s end\n"
          "function P:draft(%s)\nlocal tree = %s\nlocal seq = tree.seq\nwhile true do\n%s\nend\nend\n"
          "return P\n",
          batch ? "batch" : "sequence", r->code, batch ? "batch" : "tree", batch ? "batch[1]" : "tree",
          r->code + r->first) > 0);
  return source;
}

/* ---- running a policy -------------------------------------------------------------------------------------------- */

static dt_pair *fake_pair(void) {
  dt_fake_options options = {.vocab = 50, .context = 4400, .eos = -1};
  dt_pair *pair;
  assert_int_equal(dt_pair_open_fake(&options, &pair, NULL), DT_OK);
  return pair;
}

static volatile sig_atomic_t interrupted;
static struct timespec interrupted_at;

static void interrupt(int signal) {
  (void)signal;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &interrupted_at);
  interrupted = 1;
}

static double seconds_since(const struct timespec *then) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

static const dtl_costs costs = {.batch = 1,
                                .n_contexts = 1,
                                .n_rows = 2,
                                .drafts = true,
                                .context = {128},
                                .rows = {1, 2},
                                .target = {{1, 2}},
                                .draft = {{1, 2}},
                                .first = {1}};

static dtl_policy *generate(dt_pair *pair, const char *source, dtl_result *result, dt_error *err) {
  dtl_policy_options options = {
      .policy = "row", .source = source, .source_len = strlen(source), .interrupt = &interrupted};
  dtl_prompt prompt = {.text = " 1 2 3", .len = 6};
  dtl_request request = {
      .prompts = &prompt, .n = 1, .seq = {.max_tokens = 4300}, .costs = &costs, .interrupt = &interrupted};
  dtl_policy *policy;
  if (dtl_policy_open(&options, &policy, err)) return NULL;
  assert_non_null(request.memory = dtl_memory_open());
  if (!dtl_generate(pair, policy, &request, result, err) && result->failed) *err = result->failure;
  dtl_memory_close(request.memory);
  return policy;
}

static long peak_kib(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

/* Runs a row in a process of its own, whose exit status tells whether all is well. */
static void run_row(const row *r) {
  double most = to_the_end ? 3 : 1;
  char *source = source_of(r);
  dt_pair *pair = fake_pair();
  dtl_result result = {0};
  dt_error err = {0};
  const char *wrong = NULL;
  if (!freopen("/dev/null", "w", stderr)) _exit(9);
  signal(SIGPROF, interrupt);
  struct itimerval timer = {.it_value.tv_usec = to_the_end ? 0 : INTERRUPT_AFTER};
  setitimer(ITIMER_PROF, &timer, NULL);
  long before = peak_kib();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &interrupted_at);
  dtl_policy *policy = generate(pair, source, &result, &err);
  double seconds = seconds_since(&interrupted_at);
  long kib = peak_kib() - before;
  if (!policy) wrong = "the text is no policy";
  if (interrupted && strcmp(result.finish_reason, "interrupted") && strcmp(result.finish_reason, "policy"))
    wrong = "interrupted";
  if (!interrupted && err.status != DT_EPOLICY) wrong = "not ended as a policy's fault";
  if (!interrupted && !*err.message) wrong = "ended without a line";
  if (strchr(err.message, '\n')) wrong = "more than a line";
#ifdef __SANITIZE_ADDRESS__ /* it is slow, and keeps freed memory */
  most *= 5, kib = 0;
#endif
  if (seconds > most) wrong = "too late";
  if (kib > (strncmp(r->name, "holes", 5) ? MEMORY_MAX : HOLES_MAX)) wrong = "too much memory";
  if (wrong || getenv("SHOW"))
    printf("%s %s: %.2f s, %ld KiB, %s: %s\n", wrong ? wrong : "", r->name, seconds, kib,
           result.finish_reason ? result.finish_reason : "-", err.message);
  fflush(stdout);
  _exit(wrong != NULL);
}

/* init may take 50 times the instructions of another call: tests a little less, and more. */
static void init_is_ended_after_50_times_a_calls_instructions(void **state) {
  (void)state;
  for (int more = 0; more < 2 && to_the_end; more++) {
    char source[300];
    snprintf(source, sizeof source,
             "local P = require('dt.policy').define { name = 'x', uses = { draft = false } }\n"
             "function P:init() for _ = 1, %d do end end\n"
             "function P:draft() error('drafts', 0) end return P",
             more ? 1000001000 : 999990000);
    dt_pair *pair = fake_pair();
    dtl_result result;
    dt_error err = {0};
    dtl_policy *policy = generate(pair, source, &result, &err);
    assert_non_null(strstr(err.message, more ? "longer than 100 s (or 1000 million instructions) in init" : "drafts"));
    dtl_policy_close(policy);
    dtl_result_free(&result);
    dt_pair_close(pair);
  }
}

static void every_row_is_ended_in_time(void **state) {
  (void)state;
  int failed = 0;
  for (int i = 0; i < n_rows; i++) {
    const char *only = getenv("ROW");
    if (only && !strstr(rows[i].name, only)) continue;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) run_row(&rows[i]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) printf("%s: signal %d\n", rows[i].name, WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status)) failed++;
  }
  assert_int_equal(failed, 0);
}

/* ---- that there is a row for each -------------------------------------------------------------------------------- */

static int without_row;

static void check_row(const char *name) {
  size_t n = strlen(name);
  for (int i = 0; i < n_rows; i++)
    for (const char *at = rows[i].name; (at = strstr(at, name)); at++)
      if ((at == rows[i].name || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return;
  printf("no row in tests/lua/worst.txt for %s\n", name);
  without_row++;
}

/* Checks the functions of the table on top of the stack, and of the tables in it. */
static void check_functions(lua_State *L, const char *prefix) {
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    char name[100];
    snprintf(name, sizeof name, "%s%s", prefix, lua_tostring(L, -2));
    if (lua_isfunction(L, -1)) check_row(name);
    if (!lua_istable(L, -1) || !strcmp(name, "_G")) continue;
    size_t n = strlen(name);
    snprintf(name + n, sizeof name - n, ".");
    check_functions(L, name);
  }
}

/* Checks the methods of the userdata on top, and those of its field tree, if it has one. Pops the userdata. */
static void check_methods(lua_State *L, const char *prefix) {
  assert_true(lua_getmetatable(L, -1));
  lua_getfield(L, -1, "__index");
  if (lua_isfunction(L, -1)) assert_non_null(lua_getupvalue(L, -1, 1));
  check_functions(L, prefix);
  lua_pushliteral(L, "tree");
  if (lua_rawget(L, -2) == LUA_TUSERDATA) check_methods(L, "tree:");
  lua_settop(L, 0);
}

static int check_box(lua_State *L) {
  lua_pushglobaltable(L);
  check_functions(L, "");
  lua_getglobal(L, "require");
  lua_pushliteral(L, "dt.policy");
  lua_call(L, 1, 1);
  check_functions(L, "policy.");
  return 0;
}

/* Checks the objects that a call into the policy gets. */
static void check_objects(const char *scope) {
  char source[300];
  snprintf(source, sizeof source,
           "return require('dt.policy').define { name = 'x', uses = { costs = true }, scope = '%s' }", scope);
  dtl_policy_options options = {.policy = "row", .source = source, .source_len = strlen(source)};
  dtl_prompt prompt = {.text = " 1 2 3", .len = 6};
  dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 4}, .costs = &costs};
  dt_pair *pair = fake_pair();
  dt_session *session;
  dtl_policy *policy;
  dtl_result result = {0};
  dt_error err;
  stepper s = {0};
  assert_int_equal(dtl_policy_open(&options, &policy, &err), DT_OK);
  assert_int_equal(dt_session_open(pair, &(dt_session_options){.sequences = 1}, &session, NULL), DT_OK);
  assert_int_equal(stepper_open(&s, policy, 0, &request, &err), DT_OK);
  slot g = {.policy = policy, .request = &request, .result = &result};
  assert_int_equal(slot_open(&g, pair, &err), DT_OK);
  assert_int_equal(slot_start(&g, session, 0, NULL, &err), DT_OK);
  assert_int_equal(stepper_join(&s, &g, &err), DT_OK);
  lua_State *L = s.object.box.L;
  assert_int_equal(box_host(&s.object.box, check_box, NULL, 0, &err), DT_OK);
  lua_pushvalue(L, OPENED_SEQ);
  lua_pushvalue(L, OPENED_COSTS);
  lua_replace(L, 1);
  lua_replace(L, 2);
  lua_settop(L, 2);
  check_methods((lua_pushvalue(L, 2), L), strcmp(scope, "batch") ? "seq:" : "batch:");
  handle_detach(g.run);
  stepper_close(&s);
  assert_int_equal(slot_end(&g, NULL, &err), DT_OK);
  slot_close(&g);
  dtl_policy_close(policy);
  dtl_result_free(&result);
  dt_session_close(session);
  dt_pair_close(pair);
}

static void whatever_a_policy_can_reach_has_a_row(void **state) {
  (void)state;
  check_objects("sequence");
  check_objects("batch");
  check_row("costs:target");
  check_row("costs:draft");
  check_row("costs:first");
  check_row("out:candidates");
  static const char *const kept[] = {"memory:get",     "memory:set",    "memory:room",
                                     "corpus:longest", "corpus:places", "corpus:token"};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) check_row(kept[i]);
  assert_int_equal(without_row, 0);
}

int main(int argc, char **argv) {
  to_the_end = argc > 1 && strcmp(argv[1], "long") == 0;
  read_rows();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whatever_a_policy_can_reach_has_a_row),
      cmocka_unit_test(init_is_ended_after_50_times_a_calls_instructions),
      cmocka_unit_test(every_row_is_ended_in_time),
  };
  int status = cmocka_run_group_tests(tests, NULL, NULL);
  free(text);
  return status;
}
