/* Any bytes as a table of what passes cost: one that is taken gives times that can be counted with. */
#include "fuzz.h"

#include "costs.h"

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

/* An iteration's first draft pass is none of the cheap ones, and drawing takes no time away. */
static void check_rest(const dtl_costs *c) {
  static const int contexts[] = {0, 128, 100000, 1 << 30};
  for (size_t k = 0; c->has_draft && k < sizeof contexts / sizeof *contexts; k++)
    for (int sequences = 1; sequences <= DTL_PLACES; sequences *= 2) {
      double first = costs_first(c, sequences, contexts[k]);
      if (!(first >= costs_pass(c, c->draft, (double)sequences / c->batch, contexts[k])) ||
          !isfinite(first * 4096 * 256))
        abort();
    }
  if (!(c->target_draw >= 0 && c->draft_draw >= 0 && isfinite((c->target_draw + c->draft_draw) * 4096 * 256))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char *text = malloc(size + 1);
  if (!text) abort();
  memcpy(text, bytes, size);
  text[size] = '\0';
  dtl_costs costs, back;
  if (!costs_parse(text, NULL, &costs)) {
    check_times(&costs, costs.target);
    if (costs.has_draft) check_times(&costs, costs.draft);
    check_rest(&costs);
    char *json = costs_json(&costs, "key");
    if (!json || costs_parse(json, "key", &back)) abort();
    free(json);
  }
  free(text);
  return 0;
}
