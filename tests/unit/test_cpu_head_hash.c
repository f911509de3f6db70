/* One golden hash serves every machine: the guesses of draft heads, ids and log-probabilities, have the
 * same bits on every variant of the CPU backend. tests/golden/heads/hashes.txt has a line for each case of
 * tests/golden/heads.
 *
 *   test_cpu_head_hash          all variants that this machine can run
 *   test_cpu_head_hash print    prints what hashes.txt should contain */
#include "head_cases.h"

#include "kernels.h"
#include "system/hash.h"

#include <string.h>

/* Runs the case's iterations and hashes the guesses after each node. */
static uint64_t hash_of(int i, const char *backend) {
  const cJSON *wanted = cJSON_GetArrayItem(cases, i);
  subject s =
      open_as(i, NULL, (dt_pair_options){.backend = backend, .head_layers = layers_of(wanted), .cache_dtype = "f32"});
  uint64_t hash = HASH_START;
  dt_session *session;
  ok(dt_session_open(s.pair, &(dt_session_options){.sequences = 1, .context = context_of(&s), .use_draft = true},
                     &session, &err));
  start(session, 0, wanted, -1);
  for (const cJSON *it = get(wanted, "iterations")->child; it; it = it->next) {
    ok(dt_rollback(session, 0, &err));
    grow(session, 0, it);
    for (const cJSON *draft = get(it, "drafts")->child; draft; draft = draft->next) {
      const dt_tree_draft *said = dt_tree_draft_of(dt_seq_tree(session, 0), get(draft, "node")->valueint);
      hash = hash_bytes(hash, said->token, (size_t)said->count * sizeof *said->token);
      hash = hash_bytes(hash, said->logp, (size_t)said->count * sizeof *said->logp);
      hash = hash_bytes(hash, &said->entropy, sizeof said->entropy);
    }
    commit_expected(session, 0, it);
  }
  dt_session_close(session);
  close_subject(&s);
  return hash;
}

static const char *name_of(int i) { return get(cJSON_GetArrayItem(cases, i), "name")->valuestring; }

static uint64_t golden_of(const char *name) {
  char line[256];
  const size_t n = strlen(name);
  FILE *file = fopen(SOURCE_DIR "/tests/golden/heads/hashes.txt", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    unsigned long long hash;
    if (strncmp(line, name, n) || line[n] != '\t' || sscanf(line + n, "%llx", &hash) != 1) continue;
    fclose(file);
    return hash;
  }
  fail_msg("hashes.txt has no line for %s", name);
  return 0;
}

static void guesses_have_the_golden_hash(void **state) {
  (void)state;
  for (int v = 0; cpu_variant(v); v++) {
    char backend[32];
    snprintf(backend, sizeof backend, "cpu:%s", cpu_variant(v)->name);
    for (int i = 0; i < cJSON_GetArraySize(cases); i++)
      if (hash_of(i, backend) != golden_of(name_of(i))) fail_msg("%s, %s: the guesses differ", backend, name_of(i));
  }
}

int main(int argc, char **argv) {
  read_cases(false);
  if (argc == 2 && !strcmp(argv[1], "print")) {
    for (int i = 0; i < cJSON_GetArraySize(cases); i++)
      printf("%s\t%016llx\n", name_of(i), (unsigned long long)hash_of(i, "cpu"));
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(guesses_have_the_golden_hash)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cJSON_Delete(cases);
  return failed;
}
