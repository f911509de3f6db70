/* Any bytes as a table of pass costs, as learned costs (what is accepted gives finite positive times), and as a ledger
 * (what is accepted can be written and read again). */
#include "fuzz.h"

#include "measure/learned.h"
#include "measure/ledger.h"

#include <math.h>

static void check_times(const dtl_costs *c, const costs_of ms) {
  static const int contexts[] = {0, 1, 128, 100000, 1 << 30};
  for (size_t k = 0; k < sizeof contexts / sizeof *contexts; k++) {
    double last = 0;
    for (double rows = 1; rows <= 4096; rows *= 2) {
      double cost = costs_pass(c, ms, rows / c->batch, contexts[k]), rate = 1 / cost;
      if (!(cost > last) || !isfinite(cost * 4096 * 256) || !isfinite(rate * 4096 * 256)) abort();
      last = cost;
    }
  }
}

/* With any number of experts the time is valid, and with the usual number it is the usual time. */
static void check_experts(const dtl_costs *c) {
  static const double experts[] = {1e-9, 1, 8, 1000.5, 1e9};
  for (double rows = 1; rows <= 4096; rows *= 2) {
    double usual = costs_pass(c, c->target, rows / c->batch, 128);
    if (costs_target(c, rows / c->batch, 128, 0) != usual) abort();
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++) {
      double ms = costs_target(c, rows / c->batch, 128, experts[i]), rate = 1 / ms;
      if (!(ms > 0) || !isfinite(ms * 4096 * 256) || !isfinite(rate * 4096 * 256)) abort();
      if (c->experts[0] == 0 && ms != usual) abort();
    }
  }
}

/* A draft's first pass in an iteration is not cheaper than the others, and sampling does not reduce the time. */
static void check_rest(const dtl_costs *c) {
  static const int contexts[] = {0, 128, 100000, 1 << 30};
  for (size_t k = 0; c->drafts && k < sizeof contexts / sizeof *contexts; k++)
    for (int sequences = 1; sequences <= DTL_SLOTS; sequences *= 2) {
      double first = costs_first(c, sequences, contexts[k]);
      if (!(first >= costs_pass(c, c->draft, (double)sequences / c->batch, contexts[k])) ||
          !isfinite(first * 4096 * 256))
        abort();
    }
  for (int i = 0; i < DTL_COST_MISSES; i++)
    if (!(c->cache_miss[i] >= (i ? c->cache_miss[i - 1] : 0)) || !isfinite(c->cache_miss[i] * 4096 * 256)) abort();
  if (!(c->target_sample >= 0 && c->draft_sample >= 0 && isfinite((c->target_sample + c->draft_sample) * 4096 * 256)))
    abort();
}

/* Learned costs that are accepted can be used, written and read again. */
static void check_learned(const char *text) {
  const learned_guess guess = {.target_bytes = 1e8,
                               .draft_bytes = 1e7,
                               .target_token = 1e3,
                               .draft_token = 1e2,
                               .speed = 2e7,
                               .row = 0.06,
                               .context = 4096,
                               .batch = 1,
                               .drafts = true};
  lessons *l = malloc(sizeof *l);
  if (!l) abort();
  learned_begin(l, &guess);
  if (!learned_parse(l, text, "key")) {
    learned_look(l);
    check_times(&l->shown, l->shown.target);
    check_times(&l->shown, l->shown.draft);
    check_rest(&l->shown);
    check_experts(&l->shown);
    char *json = learned_json(l, "key");
    learned_begin(l, &guess);
    if (!json || learned_parse(l, json, "key")) abort();
    free(json);
  } else if (l->passes) {
    abort();
  }
  free(l);
}

static void check_ledger(const char *text) {
  ledger *l = ledger_new("key"), *back = ledger_new("key");
  if (!l || !back) abort();
  if (!ledger_parse(l, text)) {
    char *json = ledger_json(l);
    if (!json || ledger_parse(back, json)) abort();
    char *again = ledger_json(back);
    if (!again || strcmp(json, again) != 0) abort();
    free(json), free(again);
  }
  if (!ledger_begin_with(l, text, "greedy")) ledger_of(back, "new");
  ledger_close(l), ledger_close(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char *text = malloc(size + 1);
  if (!text) abort();
  memcpy(text, bytes, size);
  text[size] = '\0';
  dtl_costs costs, back;
  if (!costs_parse(text, NULL, &costs)) {
    check_times(&costs, costs.target);
    if (costs.drafts) check_times(&costs, costs.draft);
    check_rest(&costs);
    check_experts(&costs);
    char *json = costs_json(&costs, "key");
    if (!json || costs_parse(json, "key", &back)) abort();
    free(json);
  }
  check_learned(text);
  check_ledger(text);
  free(text);
  return 0;
}
