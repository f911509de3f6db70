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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char *text = malloc(size + 1);
  if (!text) abort();
  memcpy(text, bytes, size);
  text[size] = '\0';
  dtl_costs costs, back;
  if (!costs_parse(text, NULL, &costs)) {
    check_times(&costs, costs.target);
    if (costs.has_draft) check_times(&costs, costs.draft);
    char *json = costs_json(&costs, "key");
    if (!json || costs_parse(json, "key", &back)) abort();
    free(json);
  }
  free(text);
  return 0;
}
