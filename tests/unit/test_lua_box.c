/* Hostile policies, tests/lua/bad/: each ends the run with a policy error and the message that its file announces,
 * within the limits of time and memory, after the exact output that plain decoding would have given until then. */
#include "unit.h"

#include "dtrun_fake.h"
#include "host.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TOKENS 40
#define PROMPT " 1 2 3"
#define SECONDS_MAX 3.0         /* processor time, so that other processes do not count */
#define MEMORY_MAX (200L << 10) /* KiB for all cases together */

typedef struct {
  char bytes[4096];
  size_t len;
} output;

static bool collect(void *user, const char *bytes, size_t len) {
  output *out = user;
  assert_true(out->len + len < sizeof out->bytes);
  memcpy(out->bytes + out->len, bytes, len);
  out->len += len;
  return true;
}

/* Runs one sequence. If it fails, the run fails. */
static bool generate(dt_pair *pair, dtl_policy *policy, const dtl_request *request, dtl_result *result, dt_error *err) {
  if (dtl_generate(pair, policy, request, result, err)) return false;
  if (result->failed) *err = result->failure;
  return !result->failed;
}

static dt_pair *fake_pair(void) {
  dt_fake_options options = {.vocab = 50, .context = 400, .eos = -1};
  dt_pair *pair;
  assert_int_equal(dt_pair_open_fake(&options, &pair, NULL), DT_OK);
  return pair;
}

/* Opens the policy and generates. *result has the tokens. */
static bool run(dt_pair *pair, const dtl_policy_options *options, output *out, dtl_result *result, dt_error *err) {
  dtl_policy *policy;
  memset(result, 0, sizeof *result);
  if (dtl_policy_open(options, &policy, err)) return false;
  dtl_request request = {.prompts = &(dtl_prompt){.text = PROMPT, .len = strlen(PROMPT)},
                         .n = 1,
                         .seq = {.max_tokens = TOKENS},
                         .on_text = collect,
                         .user = out};
  bool ok = generate(pair, policy, &request, result, err);
  dtl_policy_close(policy);
  return ok;
}

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static char *read_text(const char *path) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  char *text = calloc(1, 65536);
  assert_true(fread(text, 1, 65535, f) > 0);
  fclose(f);
  return text;
}

/* Copies what the file says after "-- expect: ". */
static void announced(const char *text, char *expect, size_t size) {
  const char *at = strstr(text, "-- expect: ");
  assert_non_null(at);
  at += strlen("-- expect: ");
  snprintf(expect, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static void check_bad(dt_pair *pair, const char *path, const char *at, const dtl_result *plain) {
  char *text = read_text(path), expect[200];
  announced(text, expect, sizeof expect);
  bool settable = strstr(text, "\"at\"") != NULL;
  free(text);
  dtl_setting setting = {"at", at};
  dtl_policy_options options = {.policy = path, .settings = &setting, .n_settings = settable};
  output out = {.len = 0};
  dtl_result result;
  dt_error err = {0};
  double start = cpu_seconds();
  bool ok = run(pair, &options, &out, &result, &err);
  double seconds = cpu_seconds() - start;
  if (ok || err.status != DT_EPOLICY || !strstr(err.message, expect) || strncmp(err.message, path, strlen(path)))
    fail_msg("%s, at = %s: expected a policy error with \"%s\", got %s \"%s\"", path, at, expect,
             ok ? "success" : dtl_kind_name(err.status), err.message);
  if (seconds > SECONDS_MAX) fail_msg("%s ran for %.1f s", path, seconds);
  for (const char *c = err.message; *c; c++) assert_true((unsigned char)*c >= 0x20 && *c != 0x7F);
  if (settable) {
    assert_string_equal(result.finish_reason, "policy");
    if (!strcmp(at, "5") && result.n_tokens < 4) fail_msg("%s: only %d tokens before it failed", path, result.n_tokens);
  }
  assert_true(result.n_tokens < TOKENS);
  assert_memory_equal(result.tokens, plain->tokens, sizeof(int32_t) * (size_t)result.n_tokens);
  if (settable) { /* the streamed bytes are those of the result, and a prefix of plain decoding's */
    assert_int_equal(out.len, result.text_len);
    assert_memory_equal(out.bytes, result.text, out.len);
    assert_memory_equal(out.bytes, plain->text, out.len);
  }
  dtl_result_free(&result);
}

static long peak_kib(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

static void every_hostile_policy_ends_with_what_it_announces(void **state) {
  (void)state;
  char folder[] = "/tmp/dtrun_bad_XXXXXX";
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chdir(folder), 0);
  dt_pair *pair = fake_pair();
  output out = {.len = 0};
  dtl_result plain;
  dt_error err;
  assert_true(run(pair, &(dtl_policy_options){.policy = "ar"}, &out, &plain, &err));
  assert_int_equal(plain.n_tokens, TOKENS);
  glob_t files;
  assert_int_equal(glob(SOURCE_DIR "/tests/lua/bad/*.lua", 0, NULL, &files), 0);
  assert_true(files.gl_pathc >= 40);
  long before = peak_kib();
  for (size_t i = 0; i < files.gl_pathc; i++) {
    check_bad(pair, files.gl_pathv[i], "1", &plain);
    check_bad(pair, files.gl_pathv[i], "5", &plain);
  }
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer keeps freed memory */
  assert_true(peak_kib() - before < MEMORY_MAX);
#else
  (void)before;
#endif
  globfree(&files);
  dtl_result_free(&plain);
  dt_pair_close(pair);
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(rmdir(folder), 0); /* fails if a policy created a file */
}

static void bytecode_is_refused(void **state) {
  (void)state;
  static const char bytecode[] = "\x1bLuaT\0\x19\x93\r\n\x1a\n";
  dtl_policy_options options = {.policy = "b", .source = bytecode, .source_len = sizeof bytecode - 1};
  dtl_policy *policy;
  dt_error err;
  assert_int_not_equal(dtl_policy_open(&options, &policy, &err), DT_OK);
  assert_int_equal(err.status, DT_EPOLICY);
  assert_non_null(strstr(err.message, "attempt to load a binary chunk"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytecode_is_refused),
      cmocka_unit_test(every_hostile_policy_ends_with_what_it_announces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
