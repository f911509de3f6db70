/* Ranks that share a model compute the same as one process, to the bit, whatever the shape and the numbers of ranks and
 * threads. */
#include "cpu.h"
#include "golden_logits.h"
#include "model/model.h"
#include "random_parts.h"
#include "ranks/call.h"
#include "ranks/late.h"
#include "rig.h"
#include "thread_ranks.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROMPT = 70, NODES = 9, K = 8, TOKENS = PROMPT + 1, CHAIN = 6 };

/* All results that a pass can give, after a prompt, moved rows, another text and a restored snapshot. */
typedef struct {
  float *logits; /* [NODES][vocab] */
  int32_t argmax[NODES], both[NODES], sampled[NODES], adjusted[NODES], top[NODES][K], top_both[NODES][K];
  float logp[NODES][K], logp_both[NODES][K], own[NODES][K], confidence[NODES], entropy[NODES], adjusted_logp[NODES];
  int kept;
  size_t weights, caches;
} outcome;

typedef struct {
  const dt_model_desc *desc;
  const char *dtype, *cache_dtype;
  int threads;
  int prompt;       /* number of tokens, at least 3; 0: PROMPT */
  outcome *of_rank; /* [ranks] */
} trial;

/* Only the test's own thread can make it fail, so other threads abort. */
static void must(dt_status status, const dt_error *why) {
  if (status) fprintf(stderr, "%s\n", why->message), abort();
}

static void ask(rig *r, const row_list *l, outcome *o) {
  dt_rows rows = rows_of(l);
  dt_error e;
  int32_t every[NODES];
  const dt_sampling filtered[2] = {{0}, {.seed = 5, .temp = 0.8f, .top_p = 0.9f}}; /* for each sequence */
  for (int i = 0; i < NODES; i++) every[i] = i;
  dt_out out = {.n = NODES, .row = every, .k = K, .vocab = r->vocab - 3};
  out.want = DT_WANT_LOGITS, out.logits = o->logits;
  must(r->ops->forward(r->weights, r->cache, &rows, &out, &e), &e);
  out.want = DT_WANT_ARGMAX, out.argmax = o->argmax;
  must(r->ops->forward(r->weights, r->cache, &rows, &out, &e), &e);
  out.want = DT_WANT_BOTH, out.argmax = o->both, out.top_id = o->top_both[0], out.top_logp = o->logp_both[0];
  must(r->ops->forward(r->weights, r->cache, &rows, &out, &e), &e);
  out.sampling = filtered;
  const dt_adjustment adjustment[] = {{2, -INFINITY, 1, 0}, {40, 4, 1.3f, 0.5f}, {90, 2, 0.5f, -1}};
  dt_row_adjustments adjustments[NODES];
  uint64_t *allowed = malloc(((size_t)r->vocab + 63) / 64 * sizeof *allowed);
  for (int w = 0; w < (r->vocab + 63) / 64; w++) allowed[w] = UINT64_C(0x8421084210842108) >> w;
  for (int i = 0; i < NODES; i++)
    adjustments[i] = (dt_row_adjustments){.text = adjustment, .n_text = i % 4, .allowed = i % 2 ? allowed : NULL};
  out.adjustments = adjustments, out.argmax = o->adjusted, out.logp = o->adjusted_logp;
  must(r->ops->forward(r->weights, r->cache, &rows, &out, &e), &e);
  free(allowed);
  out.adjustments = NULL, out.logp = NULL;
  out.want = DT_WANT_ARGMAX, out.argmax = o->sampled;
  must(r->ops->forward(r->weights, r->cache, &rows, &out, &e), &e);
  out.want = DT_WANT_TOPK, out.top_id = o->top[0], out.top_logp = o->logp[0], out.top_own = o->own[0];
  out.confidence = o->confidence, out.entropy = o->entropy;
  must(r->ops->forward(r->weights, r->cache, &rows, &out, &e), &e);
}

static void read_prompt(rig *r, int sequence, int n, int step) {
  dt_error e;
  for (int p = 0; p < n;) {
    row_list piece = {0};
    for (; p < n && piece.n < MAX_ROWS; p++) row_add_plain(&piece, sequence, p * step % r->vocab, p);
    dt_rows rows = rows_of(&piece);
    must(r->ops->forward(r->weights, r->cache, &rows, NULL, &e), &e);
  }
}

/* Computes the part of a rank, or everything if ranks is NULL. */
static void compute(dt_ranks *ranks, void *context) {
  const trial *t = context;
  outcome *o = &t->of_rank[ranks ? ranks->rank : 0];
  dt_error e;
  dt_model_desc desc = *t->desc;
  desc.path = "shared";
  rig r = {.ops = &dt_cpu_ops, .vocab = desc.shape.vocab};
  dt_backend_options options = {.threads = t->threads, .cache_dtype = t->cache_dtype, .ranks = ranks};
  o->logits = calloc((size_t)NODES * (size_t)r.vocab, sizeof *o->logits);
  must(r.ops->open(&options, &r.backend, &e), &e);
  must(r.ops->upload(r.backend, &desc, &(dt_holding){.dtype = t->dtype}, &r.weights, &e), &e);
  const int n = t->prompt;
  must(r.ops->create_cache(r.weights, 2, n + NODES + CHAIN, &r.cache, &e), &e);
  read_prompt(&r, 0, n, 37);
  int32_t from[] = {n - 1}, to[] = {n - 3}; /* the text is now two tokens shorter, and ends with the same token */
  must(r.ops->move(r.cache, 0, from, to, 1, &e), &e);
  dt_snapshot *saved = NULL;
  must(r.ops->snapshot(r.cache, 0, n - 2, &saved, &e), &e);
  read_prompt(&r, 1, n, 11);
  r.ops->keep(r.cache, 1, 0);
  must(r.ops->restore(r.cache, 1, saved, &e), &e);
  o->kept = r.ops->keep(r.cache, 1, n - 2);
  r.ops->free_snapshot(saved);
  row_list tree = {0};
  int32_t path[NODES];
  for (int i = 0; i < NODES; i++) { /* a chain of rows, then leaves of the first one */
    int depth = i < CHAIN ? i + 1 : 2;
    path[depth - 1] = n + i;
    row_add(&tree, 1, (i * 101 + 7) % r.vocab, n - 2, path, depth);
  }
  ask(&r, &tree, o);
  dt_memory memory = r.ops->memory(r.backend);
  o->weights = memory.weights, o->caches = memory.caches;
  r.ops->free_cache(r.cache);
  r.ops->free_weights(r.weights);
  r.ops->close(r.backend);
}

static void assert_same(const outcome *a, const outcome *b, int vocab) {
  assert_memory_equal(a->logits, b->logits, (size_t)NODES * (size_t)vocab * sizeof *a->logits);
  assert_memory_equal(a->argmax, b->argmax, sizeof a->argmax);
  assert_memory_equal(a->both, b->both, sizeof a->both);
  assert_memory_equal(a->sampled, b->sampled, sizeof a->sampled);
  assert_memory_equal(a->adjusted, b->adjusted, sizeof a->adjusted);
  assert_memory_equal(a->adjusted_logp, b->adjusted_logp, sizeof a->adjusted_logp);
  assert_memory_equal(a->top, b->top, sizeof a->top);
  assert_memory_equal(a->top_both, b->top_both, sizeof a->top_both);
  assert_memory_equal(a->logp, b->logp, sizeof a->logp);
  assert_memory_equal(a->logp_both, b->logp_both, sizeof a->logp_both);
  assert_memory_equal(a->own, b->own, sizeof a->own);
  assert_memory_equal(a->confidence, b->confidence, sizeof a->confidence);
  assert_memory_equal(a->entropy, b->entropy, sizeof a->entropy);
  assert_int_equal(a->kept, b->kept);
}

static void check(trial t, int most_ranks) {
  outcome alone = {0}, shared[MOST_RANKS];
  if (!t.prompt) t.prompt = PROMPT;
  t.of_rank = &alone;
  compute(NULL, &t);
  assert_int_equal(alone.kept, t.prompt - 2);
  assert_int_not_equal(alone.sampled[0], -1);
  for (int ranks = 1; ranks <= most_ranks; ranks++) {
    memset(shared, 0, sizeof shared);
    t.of_rank = shared;
    run_ranks(ranks, compute, &t);
    assert_same(&alone, &shared[0], t.desc->shape.vocab);
    for (int i = 0; i < ranks; i++) {
      assert_int_equal(shared[i].kept, alone.kept);
      free(shared[i].logits);
    }
  }
  free(alone.logits);
}

static void ranks_give_the_bits_of_one(void **state) {
  (void)state;
  for (int s = 0; s < RANDOM_SHAPES; s++) {
    random_model *m = random_model_new(&random_shapes[s], 11);
    check((trial){&m->desc, NULL, NULL, 1 + s % 3, 0, NULL}, s < 2 ? MOST_RANKS : 4);
    if (s == 1) check((trial){&m->desc, "q8", "f16", 2, 0, NULL}, 3);
    random_model_free(m);
  }
}

static void so_do_they_with_windows_caps_and_norms_of_all_kinds(void **state) {
  (void)state;
  for (int part = 0; part < RANDOM_SHARED; part++) {
    random_model *m = random_parts_new(part, 11);
    for (int threads = 1; threads <= 2; threads++) check((trial){&m->desc, NULL, NULL, threads, 0, NULL}, 4);
    random_model_free(m);
  }
}

/* One model has an embedding of its own, the other one shares it with the output. */
static void so_do_they_with_the_bundled_pair(void **state) {
  (void)state;
  const char *folders[] = {SOURCE_DIR "/models/mini-draft", SOURCE_DIR "/models/mini-target"};
  for (int i = 0; i < 2; i++) {
    model *m = NULL;
    ok(model_open(folders[i], &m, &err));
    dt_model_desc tied = *model_desc(m);
    tied.embed = tied.unembed;
    check((trial){model_desc(m), NULL, NULL, 1, 0, NULL}, 4);
    check((trial){&tied, NULL, NULL, 2, 0, NULL}, 3);
    model_close(m);
  }
}

/* Models of two, two and three key heads, so that some ranks have none; in the first model the value heads of a key
 * head are not adjacent. The trees' rows read states at several positions; of the longest text the first rows are
 * lost. */
static void so_do_they_with_linear_attention(void **state) {
  (void)state;
  static const char *const names[] = {"gguf_qwen35", "qwen35", "qwen35_whole"};
  static const int prompts[] = {92, 109, 126, 560};
  for (int i = 0; i < 3; i++) {
    golden g = golden_read(names[i]);
    model *m = NULL;
    ok(model_open(g.model, &m, &err));
    assert_int_equal(model_desc(m)->shape.delta_tiled, i == 0);
    for (int j = 0; j < 4 && prompts[j] + CHAIN <= model_desc(m)->shape.context; j++)
      check((trial){model_desc(m), NULL, NULL, 1 + j % 2, prompts[j], NULL}, 4);
    check((trial){model_desc(m), "q8", "f16", 2, PROMPT, NULL}, 3);
    model_close(m);
    golden_free(&g);
  }
}

/* Each rank holds only its part of the model: of a model whose size can be divided evenly, its share. All ranks have
 * the norms. */
static void each_holds_its_part(void **state) {
  (void)state;
  const model_shape even = {"even", 4096,        256,         4,     8,    4,     32,    1024,  32,
                            DT_F16, DT_NORM_RMS, DT_ACT_SILU, false, true, false, false, false, false};
  random_model *m = random_model_new(&even, 3);
  outcome alone = {0}, shared[MOST_RANKS];
  trial t = {&m->desc, NULL, NULL, 1, PROMPT, &alone};
  compute(NULL, &t);
  for (int ranks = 2; ranks <= 4; ranks += 2) {
    size_t most = alone.weights / (size_t)ranks + ((size_t)2 << 20); /* whole huge pages */
    memset(shared, 0, sizeof shared);
    t.of_rank = shared;
    run_ranks(ranks, compute, &t);
    for (int i = 0; i < ranks; i++) {
      assert_true(shared[i].weights <= most);
      assert_true(shared[i].weights >= alone.weights / (size_t)ranks);
      assert_true(shared[i].caches < alone.caches / (size_t)ranks + 4096);
      free(shared[i].logits);
    }
  }
  free(alone.logits);
  random_model_free(m);
}

/* Nothing is sent for a model that is not shared: a draft model is whole on the rank that runs it. */
static void compute_whole(dt_ranks *ranks, void *context) {
  const trial *t = context;
  dt_error e;
  rig r = {.ops = &dt_cpu_ops, .vocab = t->desc->shape.vocab};
  if (ranks->rank) return;
  must(r.ops->open(&(dt_backend_options){.threads = 1, .ranks = ranks}, &r.backend, &e), &e);
  must(r.ops->upload(r.backend, t->desc, NULL, &r.weights, &e), &e);
  must(r.ops->create_cache(r.weights, 1, 4, &r.cache, &e), &e);
  row_list one = {0};
  row_add_plain(&one, 0, 1, 0);
  t->of_rank->logits = rig_run(&r, &one, true);
  rig_close(&r);
}

static void what_is_not_shared_is_whole(void **state) {
  (void)state;
  random_model *m = random_model_new(&random_shapes[2], 4);
  outcome here = {0};
  row_list one = {0};
  row_add_plain(&one, 0, 1, 0);
  run_ranks(2, compute_whole, &(trial){&m->desc, NULL, NULL, 1, 0, &here});
  rig r = rig_open(&dt_cpu_ops, NULL, 1, &m->desc, 1, 4);
  float *expected = rig_run(&r, &one, true);
  assert_memory_equal(expected, here.logits, (size_t)r.vocab * sizeof *expected);
  free(expected), free(here.logits);
  rig_close(&r);
  random_model_free(m);
}

/* The others receive what rank 0 sends; a truncated message is not accepted as a call. */
static void a_call_arrives_as_it_was_said(void **state) {
  (void)state;
  row_list l = {0};
  for (int p = 0; p < 5; p++) row_add_plain(&l, p % 2, p * 3, p);
  const int32_t wanted[] = {1, 4};
  const call kinds[] = {
      {.kind = CALL_OPEN, .n = 3, .version = "1.2", .variant = NULL, .cache_dtype = "f16"},
      {.kind = CALL_UPLOAD, .on = 1, .path = "a/model", .how = {NULL, "16"}, .signature = 77},
      {.kind = CALL_KEEP, .on = 2, .sequence = 1, .n = 40},
      {.kind = CALL_MOVE, .on = 2, .sequence = 4, .n = 2, .from = wanted, .to = wanted},
      {.kind = CALL_FORWARD,
       .on = 5,
       .with = 6,
       .rows = rows_of(&l),
       .wants = true,
       .out = {.want = DT_WANT_TOPK, .n = 2, .row = wanted, .k = 7, .vocab = 50}},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t bytes, again;
    call heard;
    void *message = call_pack(&kinds[i], &bytes);
    assert_true(call_unpack(message, bytes, &heard));
    void *repeated = call_pack(&heard, &again);
    assert_int_equal(bytes, again);
    assert_memory_equal(message, repeated, bytes);
    for (size_t less = 0; less + 8 < bytes; less++) {
      void *part = malloc(less + 1);
      memcpy(part, message, less);
      assert_false(call_unpack(part, less, &heard));
      free(part);
    }
    free(message), free(repeated);
  }
  call heard;
  size_t bytes;
  void *message = call_pack(&kinds[4], &bytes);
  assert_true(call_unpack(message, bytes, &heard));
  assert_memory_equal(heard.rows.token, l.token, 5 * sizeof *l.token);
  assert_memory_equal(heard.out.row, wanted, sizeof wanted);
  assert_int_equal(heard.out.k, 7);
  assert_int_equal(heard.with, 6);
  free(message);
}

/* Rank 1 has another version. Nothing is opened on any rank, and all report the reason. */
static void open_one_of_another_version(dt_ranks *ranks, void *context) {
  dt_error *errors = context;
  call_site site = {.ranks = ranks};
  int number;
  call c = {.kind = CALL_OPEN, .n = 1, .version = ranks->rank == 1 ? "0.0.0" : dt_version()};
  if (call_make(&site, &c, &number, &errors[ranks->rank]) == DT_OK) abort();
  if (site.made[0]) abort();
  free(site.made);
}

static void a_failure_of_one_is_that_of_all(void **state) {
  (void)state;
  dt_error errors[3];
  run_ranks(3, open_one_of_another_version, errors);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(errors[i].status, DT_EINPUT);
    assert_non_null(strstr(errors[i].message, "rank 1 on "));
    assert_non_null(strstr(errors[i].message, "rank 0 is dtrun 0.0.0: all ranks need the same version"));
  }
}

static sem_t called;

static void is_late(int ranks, int seconds) {
  if (ranks != 3 || seconds != 20) abort();
  sem_post(&called);
}

static void who_is_late_is_told_once(void **state) {
  (void)state;
  assert_int_equal(sem_init(&called, 0, 0), 0);
  late_watch patient = {.call = is_late, .ranks = 3, .seconds = 20, .wait = 86400};
  ok(late_begin(&patient, &err));
  late_end(&patient);
  assert_int_equal(sem_trywait(&called), -1);
  late_watch watch = {.call = is_late, .ranks = 3, .seconds = 20, .wait = 1};
  ok(late_begin(&watch, &err));
  assert_int_equal(sem_wait(&called), 0);
  late_end(&watch);
  assert_int_equal(sem_trywait(&called), -1);
  sem_destroy(&called);
}

static void is_late_here(int ranks, int seconds) {
  (void)ranks, (void)seconds;
  _exit(3);
}

static void be_suspended(void) {
  dt_error e;
  late_watch watch = {.call = is_late_here, .ranks = 3, .seconds = 3, .wait = 3};
  if (late_begin(&watch, &e)) _exit(1);
  usleep(300000); /* by now its thread waits */
  raise(SIGSTOP);
  usleep(300000);
  late_end(&watch);
  _exit(0);
}

/* As with Ctrl-Z at a terminal, which suspends all programs of the mpirun. */
static void who_was_suspended_is_not_late(void **state) {
  (void)state;
  int status;
  pid_t child = fork();
  if (!child) be_suspended();
  assert_int_equal(waitpid(child, &status, WUNTRACED), child);
  assert_true(WIFSTOPPED(status));
  usleep(3200000); /* longer than the limit */
  kill(child, SIGCONT);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_give_the_bits_of_one),
                                     cmocka_unit_test(so_do_they_with_windows_caps_and_norms_of_all_kinds),
                                     cmocka_unit_test(so_do_they_with_the_bundled_pair),
                                     cmocka_unit_test(so_do_they_with_linear_attention),
                                     cmocka_unit_test(a_call_arrives_as_it_was_said),
                                     cmocka_unit_test(a_failure_of_one_is_that_of_all),
                                     cmocka_unit_test(each_holds_its_part),
                                     cmocka_unit_test(what_is_not_shared_is_whole),
                                     cmocka_unit_test(who_is_late_is_told_once),
                                     cmocka_unit_test(who_was_suspended_is_not_late)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
