/* Finds the names that a mistyped one may mean: see dtl_near. */
#include "host.h"

#include "system/os.h"

#include <limits.h>
#include <string.h>

#define LONGEST 40 /* bytes; longer names are not compared */

/* Levenshtein distance of a[0..n-1] and b; INT_MAX if either is too long for a name. */
static int distance(const char *a, size_t n, const char *b) {
  int row[LONGEST + 1];
  size_t m = strlen(b);
  if (n > LONGEST || m > LONGEST) return INT_MAX;
  for (size_t j = 0; j <= m; j++) row[j] = (int)j;
  for (size_t i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= m; j++) {
      int best = diagonal + (a[i - 1] != b[j - 1]);
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (row[j] + 1 < best) best = row[j] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[m];
}

/* The distance of a name from the typed text: 0 if it begins with that text, 1 if it contains it; otherwise the number
 * of letters that differ, if that is at most a third. */
static int far_from(const char *typed, size_t n, const char *name) {
  if (n >= 2 && strncmp(name, typed, n) == 0) return 0;
  if (n >= 3 && n <= strlen(name) && os_find(name, strlen(name), typed, n)) return 1;
  int d = distance(typed, n, name);
  return d <= (int)n / 3 ? d : INT_MAX;
}

int dtl_near(const char *typed, size_t n, const char *const *names, int n_names, const char **near, int most) {
  int found = 0, far[DTL_NEAR];
  if (!typed || !names || !near) return 0;
  if (most > DTL_NEAR) most = DTL_NEAR;
  for (int i = 0; i < n_names; i++) {
    if (!names[i]) continue;
    int d = far_from(typed, n, names[i]), at = found;
    if (d == INT_MAX) continue;
    while (at > 0 && far[at - 1] > d) at--;
    if (at >= most) continue;
    if (found < most) found++;
    for (int k = found - 1; k > at; k--) near[k] = near[k - 1], far[k] = far[k - 1];
    near[at] = names[i], far[at] = d;
  }
  return found;
}
