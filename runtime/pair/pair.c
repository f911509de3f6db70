/* A target and its draft on one device, with the tokenizer they share. */
#include "pair/pair.h"
#include "dtrun_fake.h"
#include "fake/fake.h"
#include "model/head.h"
#include "pair/account.h"
#include "pair/backends.h"
#include "pair/draft_output.h"
#include "pair/numbers.h"
#include "ranks/join.h"
#include "split/split.h"
#include "system/need.h"
#include "system/numa.h"
#include "system/processors.h"
#include "text/load_gguf.h"
#include "text/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dt_processors(void) { return processors_usable(""); }

/* The name in a list, which ends with NULL; NULL: the list does not have it. */
static const char *entry(const char *const *names, const char *name) {
  while (*names && strcmp(*names, name)) names++;
  return *names;
}

typedef struct {
  char text[64]; /* such as "f32 or f16" */
} name_list;

static name_list list_of(const char *const *names) {
  name_list l = {""};
  for (; *names; names++) {
    size_t used = strlen(l.text);
    snprintf(l.text + used, sizeof l.text - used, "%s%s", used ? " or " : "", *names);
  }
  return l;
}

static dt_status fail_unknown(const dt_pair *p, const char *what, const char *asked, const char *const *names,
                              dt_error *err) {
  return dt_fail(err, DT_EINPUT, "%s: '%.40s' is not supported by the backend %s; supported: %s", what, asked,
                 p->ops->name, list_of(names).text);
}

/* The backend's first type is the default. */
static dt_status set_cache_dtype(dt_pair *p, const char *dtype, dt_error *err) {
  const char *const *t = p->ops->cache_dtypes;
  if (dtype && !entry(t, dtype)) return fail_unknown(p, "cache_dtype", dtype, t, err);
  while (dtype && strcmp(dtype, *t)) t++;
  p->cache_dtype = *t;
  return DT_OK;
}

static dt_status check_activations(const dt_pair *p, const char *asked, dt_error *err) {
  if (!asked || entry(p->ops->activations, asked)) return DT_OK;
  if (*p->ops->activations) return fail_unknown(p, "activations", asked, p->ops->activations, err);
  return dt_fail(err, DT_EINPUT,
                 "activations: '%.40s' is not possible: the backend %s does not compute with quantized weights", asked,
                 p->ops->name);
}

/* The default number of threads in a mode of --numa. */
static int usual_threads(const char *numa) {
  topology processors;
  numa_read(numa, &processors);
  return processors_threads("", &processors);
}

/* Reads how the target is split. A number may be larger than that of the layers. *option: the first of the options that
 * split it; NULL: it is not split. */
static dt_status read_split(dt_pair *p, const dt_pair_options *o, dt_backend_options *options, const char **option,
                            dt_error *err) {
  const char *layers = o->gpu_layers;
  char *end = NULL;
  p->all_that_fit = layers && !strcmp(layers, "auto");
  const bool all = layers && !strcmp(layers, "all");
  const long n = layers && !p->all_that_fit && !all ? strtol(layers, &end, 10) : 1;
  if (end && (end == layers || *end))
    return dt_fail(err, DT_EINPUT, "gpu_layers: '%.40s' is not a number; give one, auto or all", layers);
  if (n < 1 || n > INT_MAX)
    return dt_fail(err, DT_EINPUT, "gpu_layers: %.40s is out of range: at least 1, auto or all", layers);
  const dt_status s = split_check_devices(o->gpus, err);
  if (s) return s;
  if (o->cpu_experts < 0) return dt_fail(err, DT_EINPUT, "cpu_experts: %d is out of range: at least 1", o->cpu_experts);
  options->device_layers = end ? (int)n : 0, options->devices = o->gpus, options->host_experts = o->cpu_experts;
  *option = layers ? "gpu_layers" : o->cpu_experts ? "cpu_experts" : o->gpus > 1 ? "gpus" : NULL;
  return DT_OK;
}

static dt_status open_device(dt_pair *p, const dt_pair_options *o, dt_error *err) {
  if (o->threads < 0 || o->threads > 1024)
    return dt_fail(err, DT_EINPUT, "threads: %d is out of range: 1..1024", o->threads);
  if (o->numa && !entry(NUMA_MODES, o->numa))
    return dt_fail(err, DT_EINPUT, "numa: '%.40s' is not supported; supported: %s", o->numa, list_of(NUMA_MODES).text);
  dt_backend_options options = {.threads = o->threads ? o->threads : usual_threads(o->numa), .numa = o->numa};
  p->threads = options.threads;
  const char *option = NULL;
  dt_status s = read_split(p, o, &options, &option, err);
  if (s) return s;
  p->ops = option ? backend_split(o->backend, option, &options, err) : backend_find(o->backend, &options.variant, err);
  const char *passed_over = backend_passed_over(o->backend);
  if (passed_over && !(p->device_left_out = strdup(passed_over))) return dt_fail_memory(err, "a message", 1);
  if (!p->ops || set_cache_dtype(p, o->cache_dtype, err)) return DT_EINPUT;
  options.cache_dtype = p->cache_dtype;
  options.packed = o->packed;
  p->open = options;
  return p->ops->open(&options, &p->backend, err);
}

/* int8 is an older name of q8. The backend must be able to round weights to the chosen type. */
static dt_status find_weights(const dt_pair *p, const char *what, const char *asked, const char **found,
                              dt_error *err) {
  if (asked && !strcmp(asked, "int8")) asked = "q8";
  *found = asked ? entry(p->ops->weight_dtypes, asked) : NULL;
  if (!asked || *found) return DT_OK;
  if (*p->ops->weight_dtypes) return fail_unknown(p, what, asked, p->ops->weight_dtypes, err);
  return dt_fail(err, DT_EINPUT, "%s: '%.40s' is not possible: the backend %s cannot round weights", what, asked,
                 p->ops->name);
}

/* The type that draft_weights names; NULL: it names none. */
static const char *named(const char *draft_weights) {
  const bool none = draft_weights && (!strcmp(draft_weights, "auto") || !strcmp(draft_weights, "file"));
  return none ? NULL : draft_weights;
}

/* Opens the tokenizer of a GGUF file, or of the folder. */
static dt_status open_tokenizer(const model *m, const char *path, tok **tokenizer, dt_error *err) {
  char file[4096];
  if (model_gguf(m)) return tok_open_gguf(model_gguf(m), tokenizer, err);
  snprintf(file, sizeof file, "%s/tokenizer.json", path);
  return tok_open(file, tokenizer, err);
}

/* Returns whether a token of fill-in-the-middle begins another text. No file names these as ends. */
static bool begins_another(const tok *tokenizer, int32_t id) {
  dt_infill marks;
  return tok_infill(tokenizer, &marks) && (id == marks.pad || id == marks.repo || id == marks.file);
}

/* Adds the tokens that end a text according to the tokenizer. This is needed for a GGUF file, which names only one
 * itself, and for a folder whose files name none. */
static void add_ends(const model *m, const tok *tokenizer, int32_t *eos, int *n_eos) {
  int n, known = *n_eos;
  const int32_t *ends = tok_ends(tokenizer, &n);
  for (int i = 0; i < n && *n_eos < MODEL_MAX_EOS; i++) {
    int k = 0;
    if (known > 0 && !model_gguf(m) && !begins_another(tokenizer, ends[i])) continue;
    while (k < *n_eos && eos[k] != ends[i]) k++;
    if (k == *n_eos) eos[(*n_eos)++] = ends[i];
  }
}

/* Chooses how many of a target's layers are on GPUs, if the caller leaves it to the pair. If one GPU has them all, its
 * own backend computes them, which is faster at prompts. */
static dt_status settle_split(dt_pair *p, const dt_model_desc *d, int context, dt_error *err) {
  if (p->all_that_fit) account_choose_layers(p, d, context);
  if (!split_is_whole(p->backend, d)) return DT_OK;
  p->ops->close(p->backend);
  p->backend = NULL, p->ops = p->open.device;
  return p->ops->open(&p->open, &p->backend, err);
}

/* Loads one model: opens its files, uploads it, and closes the files. Returns the end-of-text ids and the tokenizer. */
static dt_status load(dt_pair *p, const char *path, const dt_rope *rope, const dt_holding *how,
                      const dt_draft_vocab *vocab, dt_weights **weights, dt_model_info *info, int32_t *eos, int *n_eos,
                      tok **tokenizer, dt_error *err) {
  model *m = NULL;
  draft_output output = {0};
  dt_status s = model_open_turned(path, rope, &m, err);
  if (!s) s = open_tokenizer(m, path, tokenizer, err);
  if (s) goto done;
  dt_model_desc cut = *model_desc(m);
  const dt_model_desc *d = &cut;
  *info = (dt_model_info){.path = info->path,
                          .vocab = d->shape.vocab,
                          .context = d->shape.context,
                          .window = d->shape.window,
                          .rope_context = model_rope_context(m),
                          .layers = d->shape.layers,
                          .hidden = d->shape.hidden,
                          .experts = d->shape.experts,
                          .deepest = d->shape.delta_value_heads ? DT_DELTA_LAG : 0,
                          .chosen_experts = d->shape.chosen};
  *n_eos = model_eos(m, eos);
  add_ends(m, *tokenizer, eos, n_eos);
  if ((s = draft_output_open(p, vocab, false, &cut, &output, err))) goto done;
  if (weights == &p->target) cut.path = path, cut.rope = *rope; /* marks the model as one that ranks share */
  if (p->ops == &dt_split_ops && weights == &p->target) s = settle_split(p, d, rope->context, err);
  if (!s) s = account_fits(p, d, path, rope->context, err);
  if (!s) s = p->ops->upload(p->backend, d, how, weights, err);
done:
  draft_output_close(&output);
  model_close(m);
  return s;
}

/* Whether a draft is the MTP layer in the target's own files. */
static bool is_mtp(const char *draft) { return !strcmp(draft, "mtp"); }

bool dt_draft_is_own(const char *draft) { return draft && is_mtp(draft); }

/* The types of a head's weights and of its output, if the caller leaves them to the pair; NULL: as in the files. Heads
 * come in 16 bits, and in q8 they guess as well. An output of its own in q4 costs a wide head nearly no guesses and
 * saves a sixth of its time (tests/bench/results/models.md). */
static dt_holding holding_of_heads(const dt_pair *p, const dt_pair_options *o, const dt_model_desc *d) {
  enum { WIDE = 512 };
  const bool weights = o->draft_weights && !strcmp(o->draft_weights, "auto"),
             output = weights && o->draft_output && !strcmp(o->draft_output, "auto");
  const char *const *names = p->ops->weight_dtypes;
  return (dt_holding){.dtype = weights ? entry(names, "q8") : NULL,
                      .output = output && d->unembed.source && d->shape.hidden >= WIDE ? entry(names, "q4") : NULL};
}

/* Loads a draft head: it has no tokenizer, and its ids are the target's. */
static dt_status load_head(dt_pair *p, const dt_pair_options *o, dt_holding how, pair_draft *to, dt_error *err) {
  if (!p->ops->upload_head)
    return dt_fail(err, DT_EINPUT, "%s is a draft head, which the backend %s does not run (--backend cpu does)",
                   o->draft, p->ops->name);
  head *h = NULL;
  const dt_shape target = {.vocab = p->target_info.vocab,
                           .layers = p->target_info.layers,
                           .hidden = p->target_info.hidden,
                           .context = p->target_info.context};
  bool own = is_mtp(o->draft);
  if (own && o->head_layers)
    return dt_fail(err, DT_EINPUT, "head_layers: the target's MTP layer always reads the output of its final norm");
  dt_status s = own ? head_open_own(o->target, &o->rope, &target, &h, err)
                    : head_open(o->draft, &o->rope, &target, o->head_layers, &h, err);
  if (s) return s;
  const dt_shape *shape = &head_desc(h)->model.shape;
  to->info = (dt_model_info){.path = to->path,
                             .vocab = shape->vocab,
                             .context = shape->context,
                             .window = shape->window,
                             .layers = shape->layers,
                             .hidden = shape->hidden,
                             .block = dt_head_block(head_desc(h))};
  snprintf(to->head, sizeof to->head, "%s", head_said(h));
  to->distances = head_desc(h)->distances;
  to->cross_attention = head_desc(h)->kind == DT_HEAD_CROSS_ATTENTION;
  to->mask = head_desc(h)->mask;
  to->from_anchor = head_desc(h)->from_anchor;
  dt_head_desc cut = *head_desc(h);
  const dt_holding usual = holding_of_heads(p, o, &cut.model);
  if (!how.dtype) how.dtype = usual.dtype;
  if (!how.output) how.output = usual.output;
  to->output = how.output;
  draft_output output = {0};
  if (cut.distances && o->draft_vocab)
    s = dt_fail(err, DT_EINPUT, "draft_vocab: %s is a Medusa head, which has an output for each distance", o->draft);
  if (!s) s = draft_output_open(p, o->draft_vocab, how.output && !cut.distances, &cut.model, &output, err);
  if (!s) s = p->ops->upload_head(p->backend, &cut, &how, p->target, &to->weights, err);
  if (!s) s = successors_open(head_desc(h), &to->successors, err);
  draft_output_close(&output);
  head_close(h);
  return s;
}

/* Loads a draft model with the target's tokenizer. */
static dt_status load_draft(dt_pair *p, const dt_pair_options *o, dt_holding how, pair_draft *to, dt_error *err) {
  int32_t eos[MODEL_MAX_EOS];
  int n_eos;
  tok *tokenizer = NULL;
  if (o->head_layers)
    return dt_fail(err, DT_EINPUT, "head_layers: %s is a model, not a draft head that reads layers of the target",
                   o->draft);
  to->info.path = to->path;
  to->output = how.output;
  const dt_rope rope = {.context = o->rope.context}; /* a draft's own files say how it is scaled */
  dt_status s = load(p, o->draft, &rope, &how, o->draft_vocab, &to->weights, &to->info, eos, &n_eos, &tokenizer, err);
  if (!s && tok_fingerprint(tokenizer) != tok_fingerprint(p->tokenizer))
    s = dt_fail(err, DT_EINPUT, "%s and %s have different tokenizers: a draft model must share the target's", o->draft,
                o->target);
  tok_close(tokenizer);
  return s;
}

static void free_draft(const dt_pair *p, pair_draft *d) {
  if (d->weights) p->ops->free_weights(d->weights);
  successors_close(d->successors);
  free(d->path), free(d->vocab);
  *d = (pair_draft){0};
}

/* Opens the pair without its draft, which cannot be used; *why is kept. */
static dt_status leave_out(dt_pair *p, const dt_error *why, dt_error *err) {
  free_draft(p, &p->draft);
  p->left_out = strdup(why->message);
  return p->left_out ? DT_OK : dt_fail_memory(err, "a message", strlen(why->message));
}

/* Measures the memory of a model, without the memory that the pair had taken before it. */
static void measure(const dt_pair *p, const dt_weights *weights, size_t before, dt_model_info *info) {
  enum { SLOTS = 1024 };
  info->weight_bytes = p->ops->memory(p->backend).weights - before;
  info->token_bytes = (p->ops->cache_bytes(weights, 2 * SLOTS) - p->ops->cache_bytes(weights, SLOTS)) / SLOTS;
}

/* Sets which tokens of a text the draft sees. */
static dt_status set_window(const dt_pair *p, const dt_pair_options *o, pair_draft *to, dt_error *err) {
  if (!o->draft_window) return DT_OK;
  if (!p->ops->windows)
    return dt_fail(err, DT_EINPUT, "draft_window: the backend %s does not support it (--backend cpu does)",
                   p->ops->name);
  if (to->distances)
    return dt_fail(err, DT_EINPUT, "draft_window: %s is a Medusa head, which sees no earlier tokens", o->draft);
  to->window = (dt_window){o->draft_window, DT_DRAFT_SINKS};
  snprintf(to->window_text, sizeof to->window_text, "%d+%d", to->window.last, to->window.sinks);
  return DT_OK;
}

static dt_status open_draft(dt_pair *p, const dt_pair_options *o, dt_holding how, dt_error *err) {
  pair_draft *to = &p->draft;
  const char *cut = o->draft_vocab ? o->draft_vocab->name : NULL;
  bool is_head = is_mtp(o->draft);
  size_t before = p->ops->memory(p->backend).weights;
  to->path = strdup(o->draft);
  if (cut) to->vocab = strdup(cut);
  if (!to->path || (cut && !to->vocab)) return dt_fail_memory(err, "a path", 1);
  dt_status s = is_head ? DT_OK : head_is(o->draft, &is_head, err);
  if (!s) s = is_head ? load_head(p, o, how, to, err) : load_draft(p, o, how, to, err);
  if (!s) s = set_window(p, o, to, err);
  if (!s) measure(p, to->weights, before, &to->info);
  return s;
}

/* Opens the draft, if one is named. */
static dt_status open_named(dt_pair *p, const dt_pair_options *o, dt_holding how, dt_error *err) {
  dt_error why;
  dt_status s = o->draft ? open_draft(p, o, how, &why) : DT_OK;
  if (s && o->draft_optional) return leave_out(p, &why, err);
  if (s && err) *err = why;
  return s;
}

/* Describes what decided the target's rotation apart from its files: see dt_pair_info. */
static void say_rope(dt_pair *p, const dt_rope *o) {
  char positions[32] = "", scale[32] = "", original[16] = "";
  int context = p->target_info.rope_context;
  if (o->original) snprintf(original, sizeof original, " of %d", o->original);
  if (o->scale != 0) snprintf(scale, sizeof scale, " %g", (double)o->scale);
  if (context) snprintf(positions, sizeof positions, "%s%d positions", o->scaling ? ", " : "", context);
  snprintf(p->rope, sizeof p->rope, "%s%s%s%s", o->scaling ? o->scaling : "", scale, original, positions);
}

static dt_status check_draft_vocab(const dt_draft_vocab *v, dt_error *err) {
  static const char what[] = "draft_vocab";
  dt_status s = need_list(v->ids, v->n_ids, what, "ids", err);
  if (!s) s = need_list(v->texts, v->n_texts, what, "texts", err);
  if (!s && v->lowest < -1) s = dt_fail(err, DT_EINPUT, "%s: lowest = %d, expected -1 or more", what, v->lowest);
  for (int i = 0; !s && i < v->n_texts; i++) s = need_text(v->texts[i].text, v->texts[i].len, what, "text", err);
  return s;
}

/* Computes how much memory a draft model will need on the GPU, before the target takes all that is left. */
static dt_status reserve_draft(dt_pair *p, const dt_pair_options *o, dt_error *err) {
  bool is_head = !o->draft || is_mtp(o->draft);
  const dt_rope rope = {.context = o->rope.context};
  model *m = NULL;
  dt_status s = is_head ? DT_OK : head_is(o->draft, &is_head, err);
  if (!s && !is_head) s = model_open_turned(o->draft, &rope, &m, err);
  if (m) p->reserved = account_draft(p, model_desc(m), rope.context);
  model_close(m);
  return o->draft_optional ? DT_OK : s;
}

/* Opens a pair on the backend that its options name. *tried: that backend; NULL if there is none. */
static dt_status open_pair(const dt_pair_options *options, dt_pair **out, const dt_backend_ops **tried, dt_error *err) {
  dt_status s = DT_OK;
  double start = dt_clock_ms();
  dt_pair *p = calloc(1, sizeof *p);
  *tried = NULL;
  if (!p) return dt_fail_memory(err, "a pair", sizeof *p);
  p->target_info.path = p->target_path = strdup(options->target);
  if (!p->target_path) s = dt_fail_memory(err, "a path", 1);
  if (!s) s = open_device(p, options, err);
  dt_holding how = {.activations = options->activations};
  dt_holding draft_how = {0};
  if (!s) s = find_weights(p, "weights", options->target_weights, &how.dtype, err);
  if (!s) s = check_activations(p, options->activations, err);
  if (!s) s = find_weights(p, "draft_weights", named(options->draft_weights), &draft_how.dtype, err);
  if (!s) s = find_weights(p, "draft_output", named(options->draft_output), &draft_how.output, err);
  bool is_head = false;
  if (!s) s = head_is(options->target, &is_head, err);
  if (!s && is_head)
    s = dt_fail(err, DT_EINPUT, "%s is a draft head, not a target: give it with --draft, and its target with --target",
                options->target);
  if (!s && p->all_that_fit) s = reserve_draft(p, options, err);
  if (!s)
    s = load(p, options->target, &options->rope, &how, NULL, &p->target, &p->target_info, p->eos, &p->n_eos,
             &p->tokenizer, err);
  if (!s) measure(p, p->target, 0, &p->target_info), say_rope(p, &options->rope);
  if (!s) s = open_named(p, options, draft_how, err);
  *tried = p->ops;
  if (s) {
    dt_pair_close(p);
    return s;
  }
  p->load_ms = dt_clock_ms() - start;
  *out = p;
  return DT_OK;
}

dt_status dt_pair_open(const dt_pair_options *options, dt_pair **out, dt_error *err) {
  NEED(options, "options");
  NEED(out, "out");
  NEED(options->target, "target");
  dt_status s = options->draft_vocab ? check_draft_vocab(options->draft_vocab, err) : DT_OK;
  if (!s && options->draft_window < 0)
    s = dt_fail(err, DT_EINPUT, "draft_window: %d is out of range: at least 1", options->draft_window);
  if (s) return s;
  const dt_backend_ops *tried;
  dt_error why;
  s = open_pair(options, out, &tried, &why);
  dt_pair_options other = *options;
  other.backend = s ? backend_fallback(options->backend, tried) : NULL;
  if (!other.backend) {
    if (s && err) *err = why;
    return s;
  }
  s = open_pair(&other, out, &tried, err);
  if (!s) (*out)->device_left_out = strdup(why.message);
  return s;
}

static dt_status check_rules(const dt_fake_options *o, const dt_fake_rule *rules, int n, const char *role,
                             dt_error *err) {
  dt_status s = need_list(rules, n, role, "rules", err);
  if (s) return s;
  for (int i = 0; i < n; i++) {
    double sum = 0;
    const dt_fake_rule *r = &rules[i];
    if ((s = need_list(r->context, r->context_len, role, "ids of a context", err)) ||
        (s = need_list(r->token, r->count, role, "tokens of a rule", err)) ||
        (s = need_list(r->p, r->count, role, "probabilities of a rule", err)))
      return s;
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
  NEED(o, "options");
  NEED(out, "out");
  if (o->vocab < 1) return dt_fail(err, DT_EINPUT, "vocab: %d is out of range: at least 1", o->vocab);
  if (o->context < 2) return dt_fail(err, DT_EINPUT, "context: %d is out of range: at least 2", o->context);
  if (o->draft_context < 0)
    return dt_fail(err, DT_EINPUT, "draft_context: %d is out of range: at least 0", o->draft_context);
  if (o->eos < -1 || o->eos >= o->vocab)
    return dt_fail(err, DT_EINPUT, "eos: %d is out of range: -1 to %d", o->eos, o->vocab - 1);
  if (o->experts < 0 || o->experts > DT_EXPERTS)
    return dt_fail(err, DT_EINPUT, "experts: %d is out of range: 0 to %d", o->experts, DT_EXPERTS);
  if (o->experts && (o->chosen < 1 || o->chosen > o->experts))
    return dt_fail(err, DT_EINPUT, "chosen: %d is out of range: 1 to %d", o->chosen, o->experts);
  if (o->experts && (o->layers < 1 || o->layers > FAKE_LAYERS))
    return dt_fail(err, DT_EINPUT, "layers: %d is out of range: 1 to %d", o->layers, FAKE_LAYERS);
  if (o->experts && !(o->kept >= 0 && o->kept <= 1))
    return dt_fail(err, DT_EINPUT, "kept: %g is out of range: 0 to 1", (double)o->kept);
  dt_status s = need_list(o->delays, o->n_delays, "delays", "delays", err);
  if (!s) s = check_rules(o, o->target, o->n_target, "target", err);
  if (!s) s = check_rules(o, o->draft, o->n_draft, "draft", err);
  if (s) return s;
  dt_pair *p = calloc(1, sizeof *p);
  if (!p) return dt_fail_memory(err, "a pair", sizeof *p);
  p->ops = o->chunks ? &dt_fake_chunked_ops : &dt_fake_ops;
  p->cache_dtype = p->ops->cache_dtypes[0];
  p->threads = 1;
  p->target_info = (dt_model_info){.path = "fake", .vocab = o->vocab, .context = o->context};
  if (o->eos >= 0) p->eos[p->n_eos++] = o->eos;
  fake_model target = {.vocab = o->vocab, .rules = o->target, .n_rules = o->n_target, .times = o->target_times};
  if (o->experts) target.routes = (fake_routes){o->layers, o->experts, o->chosen, o->kept};
  const fake_model draft = {
      .vocab = o->vocab, .rules = o->draft, .n_rules = o->n_draft, .times = o->draft_times, .drafts = true};
  s = p->ops->open(&(dt_backend_options){.threads = 1}, &p->backend, err);
  if (!s && o->chunks) fake_compute_in_chunks(p->backend);
  if (!s) s = fake_delay(p->backend, o->delays, o->n_delays, err);
  if (!s) s = fake_upload(p->backend, &target, &p->target, err);
  p->target_info.weight_bytes = o->target_times.bytes;
  if (!o->no_draft && !s) {
    p->draft.info = p->target_info;
    if (o->draft_context) p->draft.info.context = o->draft_context;
    p->draft.info.weight_bytes = o->draft_times.bytes;
    s = fake_upload(p->backend, &draft, &p->draft.weights, err);
  }
  p->target_info.layers = target.routes.layers;
  p->target_info.experts = target.routes.experts;
  p->target_info.chosen_experts = target.routes.chosen;
  if (s) {
    dt_pair_close(p);
    return s;
  }
  *out = p;
  return DT_OK;
}

void dt_pair_close(dt_pair *p) {
  if (!p) return;
  if (p->idle) p->free_idle(p->idle);
  free_draft(p, &p->draft);
  if (p->target) p->ops->free_weights(p->target);
  if (p->backend) p->ops->close(p->backend);
  vocabulary_close(p->vocabulary);
  tok_close(p->tokenizer);
  free(p->target_path);
  free(p->left_out);
  free(p->device_left_out);
  free(p->flaw);
  free(p);
}

void dt_pair_describe(const dt_pair *p, dt_pair_info *info) {
  if (info) *info = (dt_pair_info){0};
  if (!p || !info) return;
  dt_memory m = p->ops->memory(p->backend);
  const pair_draft *draft = &p->draft;
  *info = (dt_pair_info){.target = p->target_info,
                         .draft = draft->info,
                         .target_dtype = p->ops->weight_dtype(p->target),
                         .draft_dtype = draft->weights ? p->ops->weight_dtype(draft->weights) : NULL,
                         .draft_vocab = draft->vocab,
                         .draft_output = draft->output,
                         .device_left_out = p->device_left_out,
                         .draft_left_out = p->left_out,
                         .draft_head = *draft->head ? draft->head : NULL,
                         .draft_window = *draft->window_text ? draft->window_text : NULL,
                         .cache_dtype = p->cache_dtype,
                         .activations = p->ops->weight_activations(p->target),
                         .rope_scaling = *p->rope ? p->rope : NULL,
                         .backend = p->ops->describe(p->backend),
                         .threads = p->threads,
                         .load_ms = p->load_ms,
                         .weight_bytes = m.weights,
                         .cache_bytes = m.caches,
                         .scratch_bytes = m.scratch,
                         .on_device = m.on_device};
  info->context = pair_context(p);
  info->tokenizer_size = p->tokenizer ? tok_size(p->tokenizer) : p->target_info.vocab;
  if (draft->weights)
    info->shared_vocab = draft->info.vocab < p->target_info.vocab ? draft->info.vocab : p->target_info.vocab;
}

int dt_pair_ranks(const dt_pair *p, dt_rank_info *info) {
  return p && info && p->ops == ranks_backend() ? ranks_info(p->backend, info) : 0;
}

dt_status pair_gave_nan(dt_pair *p, int position, dt_error *err) {
  dt_error why;
  char remedy[128] = "";
  if (entry(p->ops->cache_dtypes, "f32") && strcmp(p->cache_dtype, "f32"))
    snprintf(remedy, sizeof remedy,
             ": if keys or values are too large for caches in %s, --cache-dtype f32 can hold them", p->cache_dtype);
  else if (p->ops->memory(p->backend).on_device)
    snprintf(remedy, sizeof remedy,
             ": if its numbers are too large for the GPU's 16 bits, --backend cpu can compute it");
  if (!p->searched && p->tokenizer && numbers_check(p->target_path, &why) == DT_EINPUT) p->flaw = strdup(why.message);
  p->searched = true; /* a scripted pair has no files to search */
  return dt_fail(err, p->flaw ? DT_EWEIGHTS : DT_EDEVICE, "the target model %s returned NaN at position %d%s%s",
                 p->target_info.path, position, p->flaw ? ": " : "", p->flaw ? p->flaw : remedy);
}

double dt_pair_bandwidth(dt_pair *p) { return p ? p->ops->read_bandwidth(p->backend) : 0; }

const char *pair_token_bytes(const dt_pair *p, int32_t id, bool first, char buffer[16], size_t *len) {
  if (p->tokenizer) return tok_bytes(p->tokenizer, id, first, len);
  *len = (size_t)snprintf(buffer, 16, " %d", id);
  return buffer;
}

int pair_context(const dt_pair *p) { return p->target_info.context < DT_CONTEXT ? p->target_info.context : DT_CONTEXT; }

static const char *text_of(const void *pair, int32_t id, bool first, char buffer[16], size_t *len) {
  return pair_token_bytes(pair, id, first, buffer, len);
}

dt_status pair_vocabulary(dt_pair *p, const vocabulary **out, dt_error *err) {
  dt_status status = DT_OK;
  if (!p->vocabulary) status = vocabulary_open(p->target_info.vocab, text_of, p, p->eos, p->n_eos, &p->vocabulary, err);
  *out = p->vocabulary;
  return status;
}

int32_t pair_mark(const dt_pair *p, const char *string) {
  int32_t id = p->tokenizer ? tok_added(p->tokenizer, string) : -1;
  return id < p->target_info.vocab ? id : -1;
}

bool pair_is_eos(const dt_pair *p, int32_t id) {
  for (int i = 0; i < p->n_eos; i++)
    if (p->eos[i] == id) return true;
  return false;
}

int32_t dt_token_at(const dt_pair *p, const char *text, size_t n, size_t *len) {
  if (!p || !text || !len) return -1;
  *len = 0;
  const int32_t id = p->tokenizer ? tok_control_at(p->tokenizer, text, n, len) : -1;
  return id < p->target_info.vocab && !pair_is_eos(p, id) ? id : -1;
}

const char *dt_token_bytes(const dt_pair *p, int32_t id, bool first, char buffer[16], size_t *len) {
  if (len) *len = 0;
  return p && buffer && len ? pair_token_bytes(p, id, first, buffer, len) : "";
}

char *dt_decode(const dt_pair *p, const int32_t *ids, int n, bool first, size_t *len) {
  char buffer[16], *utf8 = NULL;
  text_stream text;
  if (!p || need_list(ids, n, __func__, "ids", NULL)) return NULL;
  dt_status status = text_init(&text, NULL, 0, NULL);
  for (int i = 0; i < n && !status; i++) {
    size_t l;
    const char *b = pair_token_bytes(p, ids[i], first && i == 0, buffer, &l);
    status = text_push(&text, b, l, NULL);
  }
  if (!status) utf8 = text_to_utf8(text.bytes, text.len, len);
  text_free(&text);
  return utf8;
}

char *dt_utf8(const char *bytes, size_t n, size_t *len) { return bytes || n == 0 ? text_to_utf8(bytes, n, len) : NULL; }
