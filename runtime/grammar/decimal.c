/* Decimal numbers: see decimal.h. */
#include "grammar/decimal.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS = 64, FAR = 100000 };

/* 0.d1d2d3... * 10^exponent; n = 0: zero. */
typedef struct {
  bool negative;
  int n, exponent;
  char digit[DIGITS];
} decimal;

static decimal read_decimal(const char *number) {
  decimal d = {.negative = *number == '-'};
  bool point = false;
  const char *at = number + d.negative;
  for (; *at && *at != 'e' && *at != 'E'; at++) {
    if (*at == '.') {
      point = true;
      continue;
    }
    if (d.n || *at != '0') {
      if (d.n < DIGITS) d.digit[d.n++] = *at;
      d.exponent += !point;
    } else {
      d.exponent -= point;
    }
  }
  long e = *at ? strtol(at + 1, NULL, 10) : 0;
  d.exponent += (int)(e > FAR ? FAR : e < -FAR ? -FAR : e);
  while (d.n && d.digit[d.n - 1] == '0') d.n--;
  if (!d.n) d.exponent = 0, d.negative = false;
  return d;
}

static int compare_sizes(const decimal *a, const decimal *b) {
  if (!a->n || !b->n) return a->n - b->n;
  if (a->exponent != b->exponent) return a->exponent - b->exponent;
  const int both = a->n < b->n ? a->n : b->n, first = memcmp(a->digit, b->digit, (size_t)both);
  return first ? first : a->n - b->n;
}

int decimal_compare(const char *a, const char *b) {
  const decimal x = read_decimal(a), y = read_decimal(b);
  if (x.negative != y.negative) return x.negative ? -1 : 1;
  return x.negative ? compare_sizes(&y, &x) : compare_sizes(&x, &y);
}

bool decimal_is_integer(const char *number) {
  const decimal d = read_decimal(number);
  return d.n <= d.exponent;
}

bool decimal_plain(const char *number, char out[80]) {
  const decimal d = read_decimal(number);
  if (d.exponent > 60 || d.exponent < -30 || d.n - d.exponent > 60 || (d.exponent < 0 && d.n - d.exponent > 60))
    return false;
  if (d.negative) *out++ = '-';
  if (d.exponent <= 0) *out++ = '0';
  for (int i = 0; i < d.exponent; i++) *out++ = i < d.n ? d.digit[i] : '0';
  if (d.n > d.exponent) *out++ = '.';
  for (int i = d.exponent; i < d.n; i++) *out++ = i < 0 ? '0' : d.digit[i];
  *out = '\0';
  return true;
}
