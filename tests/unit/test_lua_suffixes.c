/* The index of texts, compared with a search that looks everywhere, and how much of earlier outputs is stored. */
#include "lookup/corpus.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static int below(int n) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int)(state % (uint64_t)n);
}

/* How many of the last tokens of end[..n-1], at most `most`, occur in the text at `place` and right before it. */
static int common(const int32_t *text, int place, const int32_t *end, int n, int most) {
  int m = 0;
  while (m < most && m < n && m <= place && text[place - m] == end[n - 1 - m]) m++;
  return m;
}

static int longest(const int32_t *text, int size, const int32_t *end, int n, int most) {
  int best = 0;
  for (int place = 0; place < size; place++) {
    int m = common(text, place, end, n, most);
    if (m > best) best = m;
  }
  return best;
}

/* Checks that exactly those places are reported at which an occurrence of the last m tokens ends. */
static void check_places(const suffixes *s, suffixes_match match, const int32_t *end, int n, int m) {
  int count = 0;
  for (int place = 0; place < (int)s->n; place++) count += common(s->token, place, end, n, m) == m;
  assert_int_equal(match.length, count ? m : 0);
  assert_int_equal(match.to - match.from, count);
  for (uint32_t i = match.from; i < match.to; i++) {
    assert_int_equal(common(s->token, (int)s->order[i], end, n, m), m);
    if (i > match.from) assert_int_not_equal(s->order[i], s->order[i - 1]);
  }
}

static void check(int size, int ids, int n, int most, bool alike) {
  int32_t *text = malloc((size_t)size * sizeof *text), end[100];
  for (int i = 0; i < size; i++) text[i] = i == size - 1 || below(40) == 0 ? SUFFIXES_END : below(ids);
  for (int i = 0; i < n; i++) end[i] = below(ids);
  for (int i = 0, at = below(size); alike && i < n && at + i < size; i++)
    if (text[at + i] >= 0) end[i] = text[at + i];
  suffixes s;
  assert_true(suffixes_open(&s, text, (size_t)size));
  suffixes_match match = suffixes_longest(&s, end, (size_t)n, most);
  int best = longest(text, size, end, n, most < SUFFIXES_MOST ? most : SUFFIXES_MOST);
  assert_int_equal(match.length, best);
  if (best) check_places(&s, match, end, n, best);
  for (int m = 1; m <= n && m <= best + 1 && m <= SUFFIXES_MOST; m++)
    check_places(&s, suffixes_places(&s, end, (size_t)n, m), end, n, m);
  suffixes_close(&s);
}

static void the_longest_end_and_all_its_places_are_found(void **unused) {
  (void)unused;
  for (int i = 0; i < 3000; i++)
    check(1 + below(i % 10 ? 200 : 3000), 1 + below(i % 2 ? 3 : 60), 1 + below(30), 1 + below(30), i % 3);
}

/* In a text that repeats a single token, all places look alike within the length that is compared. */
static void at_most_64_tokens_are_looked_at(void **unused) {
  (void)unused;
  int32_t *text = calloc(1000, sizeof *text), end[100] = {0};
  text[999] = SUFFIXES_END;
  suffixes s;
  assert_true(suffixes_open(&s, text, 1000));
  for (int most = SUFFIXES_MOST - 1; most <= SUFFIXES_MOST + 1; most++)
    assert_int_equal(suffixes_longest(&s, end, 100, most).length, most < SUFFIXES_MOST ? most : SUFFIXES_MOST);
  suffixes_match match = suffixes_places(&s, end, 100, SUFFIXES_MOST);
  assert_int_equal(match.to - match.from, 999 - SUFFIXES_MOST + 1);
  suffixes_close(&s);
}

static void a_text_of_nothing_has_no_places(void **unused) {
  (void)unused;
  int32_t *text = malloc(sizeof *text), end[] = {3};
  *text = SUFFIXES_END;
  suffixes s;
  assert_true(suffixes_open(&s, text, 1));
  assert_int_equal(suffixes_longest(&s, end, 1, 5).length, 0);
  assert_int_equal(suffixes_longest(&s, end, 0, 5).length, 0);
  suffixes_close(&s);
}

/* Wherever an output has been stored, its end is found there, once. */
static void outputs_are_found_however_they_are_joined(void **unused) {
  (void)unused;
  corpus_outputs o = {0};
  int32_t output[200][7];
  for (int i = 0; i < 200; i++) {
    for (int k = 0; k < 7; k++) output[i][k] = 7 * i + k;
    corpus_add(&o, output[i], 7);
    assert_int_equal(o.tokens, 8 * (i + 1));
    assert_true(o.n <= 9);
  }
  for (int i = 0; i < 200; i++) {
    uint32_t found = 0;
    for (int p = 0; p < o.n; p++) {
      suffixes_match match = suffixes_places(&o.part[p], output[i], 7, 7);
      found += match.to - match.from;
    }
    assert_int_equal(found, 1);
  }
  corpus_forget(&o);
  assert_int_equal(o.tokens, 0);
}

static void outputs_are_bounded(void **unused) {
  (void)unused;
  corpus_outputs o = {0};
  int32_t *token = malloc(CORPUS_OUTPUTS * sizeof *token);
  for (unsigned i = 0; i < CORPUS_OUTPUTS; i++) token[i] = below(1 << 20);
  corpus_add(&o, token, (int)CORPUS_OUTPUTS); /* one more end of a text */
  assert_int_equal(o.tokens, 0);
  corpus_add(&o, token, (int)CORPUS_OUTPUTS - 3);
  assert_int_equal(o.tokens, CORPUS_OUTPUTS - 2);
  corpus_add(&o, token, 2);
  assert_int_equal(o.tokens, CORPUS_OUTPUTS - 2);
  corpus_add(&o, token, 1);
  assert_int_equal(o.tokens, CORPUS_OUTPUTS);
  corpus_forget(&o);
  free(token);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_longest_end_and_all_its_places_are_found),
      cmocka_unit_test(at_most_64_tokens_are_looked_at),
      cmocka_unit_test(a_text_of_nothing_has_no_places),
      cmocka_unit_test(outputs_are_found_however_they_are_joined),
      cmocka_unit_test(outputs_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
