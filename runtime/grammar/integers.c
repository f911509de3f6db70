/* Integers between bounds: see integers.h. */
#include "grammar/integers.h"

#include <stdlib.h>
#include <string.h>

typedef __int128 big;

static big power(int n) {
  big p = 1;
  while (n-- > 0) p *= 10;
  return p;
}

/* The largest integer that is not above the number. `exact`: it is the number. False: too many digits. */
static bool read_floor(const char *number, big *out, bool *exact) {
  bool negative = *number == '-', in_fraction = false;
  const char *at = number + negative;
  big n = 0;
  int digits = 0, scale = 0; /* number = n * 10^scale */
  for (; *at && *at != 'e' && *at != 'E'; at++) {
    if (*at == '.') {
      in_fraction = true;
      continue;
    }
    n = n * 10 + (*at - '0');
    digits += n > 0;
    if (digits > INTEGERS_DIGITS) return false;
    scale -= in_fraction;
  }
  long exponent = *at ? strtol(at + 1, NULL, 10) : 0;
  if (exponent > 1000 || exponent < -1000) exponent = exponent > 0 ? 1000 : -1000;
  scale += (int)exponent;
  if (n > 0 && digits + scale > INTEGERS_DIGITS) return false;
  *exact = true;
  if (n > 0 && scale > 0) n *= power(scale);
  if (scale < 0) {
    big unit = power(-scale < INTEGERS_DIGITS + 1 ? -scale : INTEGERS_DIGITS + 1);
    *exact = n % unit == 0;
    n = n / unit + (negative && !*exact);
  }
  *out = negative ? -n : n;
  return true;
}

bool integers_from(integers *i, const char *number, bool exclusive) {
  bool exact;
  big n;
  if (!read_floor(number, &n, &exact)) return false;
  n += exclusive || !exact;
  if (!i->has_low || n > i->low) i->low = n;
  return i->has_low = true;
}

bool integers_to(integers *i, const char *number, bool exclusive) {
  bool exact;
  big n;
  if (!read_floor(number, &n, &exact)) return false;
  n -= exclusive && exact;
  if (!i->has_high || n < i->high) i->high = n;
  return i->has_high = true;
}

bool integers_empty(const integers *i) { return i->has_low && i->has_high && i->low > i->high; }

/* ---- spelling ---------------------------------------------------------------------------------------------------- */

enum { TEXT = 48 };

/* The digits of a number that is not negative; gives how many. */
static int spell(big n, char text[TEXT]) {
  char reversed[TEXT];
  int len = 0;
  do reversed[len++] = (char)('0' + (int)(n % 10));
  while (n /= 10);
  for (int k = 0; k < len; k++) text[k] = reversed[len - 1 - k];
  text[len] = '\0';
  return len;
}

/* Writes the numbers from low to high, which have the same number of digits. */
static void put_range(const char *low, const char *high, FILE *out) {
  int rest = (int)strlen(low) - 1, from = low[0], to = high[0];
  char nines[TEXT], zeros[TEXT];
  if (rest < 0) return;
  snprintf(nines, sizeof nines, "%.*s", rest, "999999999999999999999999999999999999999999");
  snprintf(zeros, sizeof zeros, "%.*s", rest, "000000000000000000000000000000000000000000");
  bool cut_low = strcmp(low + 1, zeros) != 0, cut_high = strcmp(high + 1, nines) != 0;
  if (from == to && rest && (cut_low || cut_high)) {
    fprintf(out, "\"%c\" ", from);
    put_range(low + 1, high + 1, out);
    return;
  }
  fputs("(", out);
  if (cut_low) {
    fprintf(out, "\"%c\" ", from++);
    put_range(low + 1, nines, out);
  }
  to -= cut_high;
  if (from <= to) {
    fprintf(out, "%s[%c-%c] ", cut_low ? "| " : "", from, to);
    if (rest) fprintf(out, "[0-9]{%d} ", rest);
  }
  if (cut_high) {
    fprintf(out, "%s\"%c\" ", cut_low || from <= to ? "| " : "", high[0]);
    put_range(zeros, high + 1, out);
  }
  fputs(") ", out);
}

/* Writes numbers that are not negative, with `sign` before each. */
static void put_part(big low, big high, const char *sign, int *parts, FILE *out) {
  while (low <= high) { /* numbers of the same length */
    char from[TEXT] = "", to[TEXT] = "";
    int len = spell(low, from);
    big last = power(len) - 1 < high ? power(len) - 1 : high;
    spell(last, to);
    fprintf(out, "%s%s", (*parts)++ ? "| " : "", sign);
    put_range(from, to, out);
    low = last + 1;
  }
}

void integers_put(const integers *i, int digits, FILE *out) {
  char text[TEXT];
  int parts = 0;
  big bounds[2] = {i->has_low ? i->low : 0, i->has_high ? i->high : 0};
  for (int k = 0; k < 2; k++) {
    int n = spell(bounds[k] < 0 ? -bounds[k] : bounds[k], text);
    if (n > digits) digits = n;
  }
  big most = power(digits) - 1, low = i->has_low ? i->low : -most, high = i->has_high ? i->high : most;
  fputs("(", out);
  put_part(high < 0 ? -high : 1, -low, "\"-\" ", &parts, out);
  put_part(low > 0 ? low : 0, high, "", &parts, out);
  fputs(") ", out);
}
