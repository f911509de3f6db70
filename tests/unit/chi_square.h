/* Pearson's chi-square test of counted outcomes against their probabilities, at significance level 0.001. */
#ifndef CHI_SQUARE_H
#define CHI_SQUARE_H

#include <math.h>

typedef struct {
  double sum;
  int bins;
} chi_square;

static inline void chi_square_add(chi_square *x, double count, double expected) {
  x->sum += (count - expected) * (count - expected) / expected;
  x->bins++;
}

/* The value that the sum exceeds once in a thousand (Wilson and Hilferty's approximation). The number of degrees of
 * freedom is the number of bins minus one. */
static inline double chi_square_critical(const chi_square *x) {
  double df = x->bins - 1, a = 2.0 / (9.0 * df);
  return df * pow(1 - a + 3.0902 * sqrt(a), 3);
}

#endif
