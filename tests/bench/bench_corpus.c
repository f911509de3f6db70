/* The index in which policies look up texts: bench_corpus MODEL [--tokens N] TEXT-FILE... Encodes the files and, if
 * they have fewer than N tokens (ten million), continues with pieces of them in random order. Then it builds the index
 * and looks up sequences of 64 tokens, each put together from pieces of two places of the text. Every hundredth answer
 * is compared with a simple search. */
#include "dtrun.h"
#include "lookup/suffixes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define END 64 /* tokens of a query */
#define QUESTIONS 100000
#define CHECKED 20

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 88172645463325252u;
static size_t below(size_t n) { /* xorshift: the same numbers in every run */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (size_t)(state % n);
}

static bool fail(const char *what) {
  fprintf(stderr, "bench_corpus: %s\n", what);
  return false;
}

/* Adds the ids of a file, and SUFFIXES_END. */
static bool add_file(const dt_pair *pair, const char *path, int32_t *all, size_t most, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END) != 0) return fail(path);
  size_t size = (size_t)ftell(f), len;
  char *text = malloc(size + 1);
  rewind(f);
  len = text ? fread(text, 1, size, f) : 0;
  fclose(f);
  int32_t *ids = NULL;
  int count = 0;
  dt_error err;
  if (!text || dt_encode_whole(pair, text, len, &ids, &count, &err)) return fail(path);
  for (int i = 0; i < count && *n < most - 1; i++) all[(*n)++] = ids[i];
  if (*n < most) all[(*n)++] = SUFFIXES_END;
  free(text), free(ids);
  return true;
}

/* Adds pieces of 20 to 219 tokens of the text so far, until there are `most` tokens. */
static void go_on(int32_t *all, size_t n, size_t most) {
  size_t have = n;
  while (n < most) {
    size_t size = 20 + below(200), at = below(have - size);
    if (size > most - n) size = most - n;
    memcpy(all + n, all + at, size * sizeof *all);
    n += size;
  }
  all[most - 1] = SUFFIXES_END;
}

static void ask(const int32_t *all, size_t n, int32_t *end) {
  size_t split = below(END), a = below(n - END), b = below(n - END);
  for (size_t i = 0; i < END; i++) {
    end[i] = i < split ? all[a + i] : all[b + i];
    if (end[i] < 0) end[i] = 0;
  }
}

/* The longest match, found by looking at every place. */
static int search(const int32_t *all, size_t n, const int32_t *end) {
  int longest = 0;
  for (size_t place = 0; place < n; place++) {
    int m = 0;
    while (m < END && (size_t)m <= place && all[place - (size_t)m] == end[END - 1 - m]) m++;
    if (m > longest) longest = m;
  }
  return longest;
}

int main(int argc, char **argv) {
  size_t most = 10000000, n = 0;
  dt_error err;
  dt_pair *pair = NULL;
  int first = 2;
  if (argc > 4 && strcmp(argv[2], "--tokens") == 0) most = strtoul(argv[3], NULL, 10), first = 4;
  if (argc <= first || most < 1000 || most > SUFFIXES_TOKENS)
    return fail("usage: bench_corpus MODEL [--tokens N] TEXT-FILE...") ? 0 : 2;
  if (dt_pair_open(&(dt_pair_options){.target = argv[1]}, &pair, &err)) return fail(err.message) ? 0 : 2;
  int32_t *all = malloc(most * sizeof *all), (*end)[END] = malloc(QUESTIONS * sizeof *end);
  if (!all || !end) return 1;
  double start = now();
  for (int i = first; i < argc && n < most; i++)
    if (!add_file(pair, argv[i], all, most, &n)) return 2;
  double encoded = now() - start;
  if (n < 1000) return fail("the files have fewer than 1000 tokens, which is too few") ? 0 : 2;
  size_t own = n;
  if (n < most) go_on(all, n, most);
  for (int i = 0; i < QUESTIONS; i++) ask(all, most, end[i]);

  suffixes s;
  start = now();
  if (!suffixes_open(&s, all, most)) return 1;
  double built = now() - start;
  size_t bytes =
      most * (sizeof *s.token + sizeof *s.order) + (1 + (most - 1) / SUFFIXES_STEP) * SUFFIXES_KEY * sizeof *s.sample;
  long sum = 0;
  start = now();
  for (int i = 0; i < QUESTIONS; i++) sum += suffixes_longest(&s, end[i], END, END).length;
  double looked = (now() - start) / QUESTIONS;
  for (int i = 0; i < CHECKED; i++)
    if (suffixes_longest(&s, end[i], END, END).length != search(s.token, most, end[i]))
      return fail("the index missed the longest match") ? 0 : 1;
  printf("tokens %zu (%zu of the files, encoded in %.1f s), index %.2f s, %.2f bytes per token, "
         "look-up %.2f us, longest %.1f tokens on average; %d answers checked\n",
         most, own, encoded, built, (double)bytes / (double)most, looked * 1e6, (double)sum / QUESTIONS, CHECKED);
  suffixes_close(&s);
  dt_pair_close(pair);
  free(end);
  return 0;
}
