/* The time in which the draft processes a text, learned from prompts: see learned.h. */
#include "measure/learned.h"

#include <cJSON.h>
#include <math.h>

#define SHORTEST 32   /* tokens: in shorter texts the time of a pass counts more than that of its rows */
#define LEAST_MS 1e-6 /* of a token */
#define MOST_MS 1e6
#define MOVED 0.1    /* relative change that counts: a text takes a little longer the longer it is */
#define MOST_FILED 8 /* an entry of a file counts as at most this many times */

static bool is_time(double ms) { return ms >= LEAST_MS && ms <= MOST_MS; }

void learned_read(lessons *l, int n, double ms) {
  if (n >= SHORTEST && is_time(ms / n) && l->estimated.drafts) {
    place_add(&l->read, log(ms / n));
    l->waiting++;
  }
}

double learned_read_costs(lessons *l) { return l->read.n ? exp(place_counted(&l->read)) : 0; }

bool learned_read_moved(double a, double b) { return fabs(a - b) > MOVED * b; }

/* A list of one entry, or of none without a draft. The time of a draft that has processed no text is 0, and counts 0
 * times. */
void learned_read_json(lessons *l, cJSON *root) {
  cJSON *list = cJSON_AddArrayToObject(root, "read");
  if (l->estimated.drafts) cJSON_AddItemToArray(list, place_entry(learned_read_costs(l), l->read.n));
}

bool learned_read_parse(lessons *l, const cJSON *root) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "read");
  if (!list) return true; /* no text was processed */
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != l->estimated.drafts) return false;
  if (!l->estimated.drafts) return true;
  double ms;
  int times;
  if (!place_entry_read(cJSON_GetArrayItem(list, 0), &ms, &times) || (times && !is_time(ms))) return false;
  for (int k = 0; k < times && k < MOST_FILED; k++) learned_read(l, SHORTEST, SHORTEST * ms);
  return true;
}
