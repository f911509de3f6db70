/* A target and a draft model on one device, with the tokenizer they share. */
#include "pair.h"
#include "fake/fake.h"
#include "text.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *dt_version(void) { return DTRUN_VERSION; }

double dt_clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Reads the first number of a file in /sys; -1 when there is none. */
static int read_number(const char *format, int cpu) {
  char path[128];
  int value = -1;
  snprintf(path, sizeof path, format, cpu);
  FILE *f = fopen(path, "r");
  if (f) {
    if (fscanf(f, "%d", &value) != 1) value = -1;
    fclose(f);
  }
  return value;
}

/* Physical cores among the processors this process may run on: two that share a core count once. */
static int physical_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return 1;
  int seen[CPU_SETSIZE][2], n = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &set)) continue;
    int core = read_number("/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    int package = read_number("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    int i = 0;
    while (i < n && (core < 0 || seen[i][0] != core || seen[i][1] != package)) i++;
    if (i == n) seen[n][0] = core, seen[n][1] = package, n++;
  }
  return n ? n : 1;
}

/* The one of the backend's types that was asked for; the first where none was. */
static dt_status set_cache_dtype(dt_pair *p, const char *dtype, dt_error *err) {
  char known[64] = "";
  for (const char *const *t = p->ops->cache_dtypes; *t; t++) {
    if (!dtype || strcmp(dtype, *t) == 0) {
      p->cache_dtype = *t;
      return DT_OK;
    }
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used ? " or " : "", *t);
  }
  return dt_fail(err, DT_EINPUT, "cache dtype: '%.40s' is unknown to the backend %s: %s", dtype, p->ops->name, known);
}

static dt_status open_device(dt_pair *p, const dt_pair_options *o, dt_error *err) {
  if (o->threads < 0 || o->threads > 1024)
    return dt_fail(err, DT_EINPUT, "threads: %d is out of range: 1..1024", o->threads);
  dt_backend_options options = {.threads = o->threads ? o->threads : physical_cores()};
  p->threads = options.threads;
  p->ops = backend_find(o->backend, &options.variant, err);
  if (!p->ops || set_cache_dtype(p, o->cache_dtype, err)) return DT_EINPUT;
  options.cache_dtype = p->cache_dtype;
  return p->ops->open(&options, &p->backend, err);
}

/* A draft model's weights may be rounded: that changes what it guesses, never what is committed. */
static dt_status set_draft_dtype(dt_pair *p, const char *dtype, dt_error *err) {
  p->draft_int8 = dtype && strcmp(dtype, "int8") == 0;
  if (dtype && !p->draft_int8 && strcmp(dtype, "f16") != 0)
    return dt_fail(err, DT_EINPUT, "draft dtype: '%.40s' is unknown: f16 or int8", dtype);
  if (p->draft_int8 && strcmp(p->ops->name, "cpu") != 0)
    return dt_fail(err, DT_EINPUT, "draft dtype: the backend %s has no int8: f16, or the backend cpu", p->ops->name);
  return DT_OK;
}

/* One model: its files are mapped, uploaded and closed again. The end-of-text ids and the tokenizer are handed out. */
static dt_status load(dt_pair *p, const char *folder, bool int8, dt_weights **weights, dt_model_info *info,
                      int32_t *eos, int *n_eos, tok **tokenizer, dt_error *err) {
  model *m = NULL;
  char path[4096];
  snprintf(path, sizeof path, "%s/tokenizer.json", folder);
  dt_status s = model_open(folder, &m, err);
  if (!s) s = tok_open(path, tokenizer, err);
  if (s) goto done;
  dt_model_desc desc = *model_desc(m), *d = &desc;
  desc.int8 = int8;
  *info = (dt_model_info){
      .path = info->path, .vocab = d->vocab, .context = d->context, .layers = d->layers, .hidden = d->hidden};
  *n_eos = model_eos(m, eos);
  if (tok_size(*tokenizer) > d->vocab)
    s = dt_fail(err, DT_EINPUT, "%s has ids up to %d, but the model beside it has a vocabulary of %d", path,
                tok_size(*tokenizer) - 1, d->vocab);
  if (!s) s = p->ops->upload(p->backend, d, weights, err);
done:
  model_close(m);
  return s;
}

dt_status dt_pair_open(const dt_pair_options *options, dt_pair **out, dt_error *err) {
  dt_pair *p = calloc(1, sizeof *p);
  if (!p) return dt_fail_memory(err, "a pair", sizeof *p);
  int32_t draft_eos[MODEL_MAX_EOS];
  int n_draft_eos;
  tok *draft_tokenizer = NULL;
  p->target_info.path = p->target_path = strdup(options->target);
  if (options->draft) p->draft_info.path = p->draft_path = strdup(options->draft);
  dt_status s = !p->target_path || (options->draft && !p->draft_path) ? dt_fail_memory(err, "a path", 1) : DT_OK;
  if (!s) s = open_device(p, options, err);
  if (!s) s = set_draft_dtype(p, options->draft_dtype, err);
  if (!s) s = load(p, options->target, false, &p->target, &p->target_info, p->eos, &p->n_eos, &p->tokenizer, err);
  if (!s && options->draft) {
    s = load(p, options->draft, p->draft_int8, &p->draft, &p->draft_info, draft_eos, &n_draft_eos, &draft_tokenizer,
             err);
    if (!s && tok_fingerprint(draft_tokenizer) != tok_fingerprint(p->tokenizer))
      s = dt_fail(err, DT_EINPUT, "%s and %s have different tokenizers: a draft model must share the target's",
                  options->draft, options->target);
  }
  tok_close(draft_tokenizer);
  if (s) {
    dt_pair_close(p);
    return s;
  }
  *out = p;
  return DT_OK;
}

static dt_status check_rules(const dt_fake_options *o, const dt_fake_rule *rules, int n, const char *role,
                             dt_error *err) {
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int k = 0; k < rules[i].count; k++) {
      if (rules[i].token[k] < 0 || rules[i].token[k] >= o->vocab)
        return dt_fail(err, DT_EINPUT, "%s rule %d: token %d is out of range: 0..%d", role, i + 1, rules[i].token[k],
                       o->vocab - 1);
      if (rules[i].p[k] < 0)
        return dt_fail(err, DT_EINPUT, "%s rule %d: probability %g is negative", role, i + 1, (double)rules[i].p[k]);
      sum += (double)rules[i].p[k];
    }
    if (sum > 1 + 1e-6)
      return dt_fail(err, DT_EINPUT, "%s rule %d: probabilities sum to %g: at most 1", role, i + 1, sum);
  }
  return DT_OK;
}

dt_status dt_pair_open_fake(const dt_fake_options *o, dt_pair **out, dt_error *err) {
  if (o->vocab < 1) return dt_fail(err, DT_EINPUT, "vocab: %d is out of range: at least 1", o->vocab);
  if (o->context < 2) return dt_fail(err, DT_EINPUT, "context: %d is out of range: at least 2", o->context);
  dt_status s = check_rules(o, o->target, o->n_target, "target", err);
  if (!s) s = check_rules(o, o->draft, o->n_draft, "draft", err);
  if (s) return s;
  dt_pair *p = calloc(1, sizeof *p);
  if (!p) return dt_fail_memory(err, "a pair", sizeof *p);
  p->ops = &dt_fake_ops;
  p->cache_dtype = p->ops->cache_dtypes[0];
  p->threads = 1;
  p->target_info = (dt_model_info){.path = "fake", .vocab = o->vocab, .context = o->context};
  if (o->eos >= 0) p->eos[p->n_eos++] = o->eos;
  fake_model target = {.vocab = o->vocab, .rules = o->target, .n_rules = o->n_target};
  fake_model draft = {.vocab = o->vocab, .rules = o->draft, .n_rules = o->n_draft, .draft = true};
  s = p->ops->open(&(dt_backend_options){.threads = 1}, &p->backend, err);
  if (!s) s = fake_upload(p->backend, &target, &p->target, err);
  if (!s && !o->no_draft) {
    p->draft_info = p->target_info;
    if (o->draft_context) p->draft_info.context = o->draft_context;
    s = fake_upload(p->backend, &draft, &p->draft, err);
  }
  if (s) {
    dt_pair_close(p);
    return s;
  }
  *out = p;
  return DT_OK;
}

void dt_pair_close(dt_pair *p) {
  if (!p) return;
  session_free(p->idle);
  if (p->target) p->ops->free_weights(p->target);
  if (p->draft) p->ops->free_weights(p->draft);
  if (p->backend) p->ops->close(p->backend);
  tok_close(p->tokenizer);
  free(p->target_path);
  free(p->draft_path);
  free(p);
}

void dt_pair_describe(const dt_pair *p, dt_pair_info *info) {
  dt_memory m = p->ops->memory(p->backend);
  *info = (dt_pair_info){.target = p->target_info,
                         .draft = p->draft_info,
                         .draft_dtype = !p->draft       ? NULL
                                        : p->draft_int8 ? "int8"
                                                        : "f16",
                         .cache_dtype = p->cache_dtype,
                         .backend = p->ops->describe(p->backend),
                         .threads = p->threads,
                         .weight_bytes = m.weights,
                         .cache_bytes = m.caches,
                         .scratch_bytes = m.scratch,
                         .on_device = m.on_device};
  if (p->draft)
    info->shared_vocab = p->draft_info.vocab < p->target_info.vocab ? p->draft_info.vocab : p->target_info.vocab;
}

/* A scripted pair's text: ids in decimal, blanks between them. */
static dt_status encode_ids(const dt_pair *p, const char *text, size_t len, int32_t **ids, int *n, dt_error *err) {
  char *copy = strndup(text, len), *at = copy, *end;
  int32_t *list = malloc((len / 2 + 1) * sizeof *list);
  dt_status s = copy && list ? DT_OK : dt_fail_memory(err, "a prompt", len);
  for (*n = 0; !s && *(at += strspn(at, " \n")); at = end) {
    long id = strtol(at, &end, 10);
    if (end == at || id < 0 || id >= p->target_info.vocab)
      s = dt_fail(err, DT_EINPUT, "a scripted pair reads ids 0..%d, not '%.20s'", p->target_info.vocab - 1, at);
    else
      list[(*n)++] = (int32_t)id;
  }
  free(copy);
  if (s)
    free(list);
  else
    *ids = list;
  return s;
}

dt_status dt_encode(const dt_pair *p, const char *text, size_t len, int32_t **ids, int *n, dt_error *err) {
  return p->tokenizer ? tok_encode(p->tokenizer, text, len, ids, n, err) : encode_ids(p, text, len, ids, n, err);
}

const char *pair_token_bytes(const dt_pair *p, int32_t id, char buffer[16], size_t *len) {
  if (p->tokenizer) return tok_bytes(p->tokenizer, id, len);
  *len = (size_t)snprintf(buffer, 16, " %d", id);
  return buffer;
}

bool pair_is_eos(const dt_pair *p, int32_t id) {
  for (int i = 0; i < p->n_eos; i++)
    if (p->eos[i] == id) return true;
  return false;
}

char *dt_decode(const dt_pair *p, const int32_t *ids, int n, size_t *len) {
  char buffer[16], *bytes = NULL, *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&bytes, &size);
  if (!f) return NULL;
  for (int i = 0; i < n; i++) {
    size_t l;
    const char *b = pair_token_bytes(p, ids[i], buffer, &l);
    fwrite(b, 1, l, f);
  }
  if (!fclose(f)) text = text_to_utf8(bytes, size, len);
  free(bytes);
  return text;
}

char *dt_utf8(const char *bytes, size_t n, size_t *len) { return text_to_utf8(bytes, n, len); }
