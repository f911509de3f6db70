/* The cost of masks: bench_masks MODEL [times [TEXTS [tokens]]]. For each case, along a text with a schema, and for all
 * cases, it prints the microseconds of processor time of a token's mask and step: the mean, the 99th percentile and the
 * maximum, of the smallest of several runs (9) for each token. No run uses states of another.
 *
 * TEXTS is what schema_texts.lua writes with --texts: its texts are the cases, up to a number of tokens (300). Then the
 * lines are of compiling, of the first masks, and of all masks. masks_beside.py does the same with other engines. */
#include "grammar/masks.h"
#include "grammar/schema.h"
#include "pair/pair.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAMES = 2000, TOKENS = 100000, TEXTS = 1000 };

#define TEXT(name, longest) "\"" name "\": {\"type\": \"string\", \"maxLength\": " #longest "}, "
#define KEYS                                                                                                           \
  TEXT("customer_name", 24)                                                                                            \
  TEXT("email_address", 30)                                                                                            \
  TEXT("phone_number", 16)                                                                                             \
  TEXT("date_of_birth", 12)                                                                                            \
  TEXT("street_address", 30)                                                                                           \
  TEXT("preferred_language", 10)                                                                                       \
  "\"postal_code\": {\"type\": \"integer\"}, \"country_code\": {\"enum\": [\"AT\", \"BE\", \"CH\", \"DE\", \"FR\"]}, " \
  "\"order_quantity\": {\"type\": \"integer\"}, \"is_returning_customer\": {\"type\": \"boolean\"}"
#define NAMED                                                                                                          \
  "\"customer_name\", \"email_address\", \"phone_number\", \"date_of_birth\", \"street_address\", "                    \
  "\"preferred_language\", "                                                                                           \
  "\"postal_code\", \"country_code\", \"order_quantity\", \"is_returning_customer\""

static const struct {
  const char *name, *schema, *text;
} given[] = {
    {"ten keys", "{\"type\": \"object\", \"properties\": {" KEYS "}, \"required\": [" NAMED "]}",
     "{\"customer_name\": \"Maria Kowalska\", \"email_address\": \"maria.k@example.org\", \"phone_number\": \"+48 600 "
     "123 456\", "
     "\"date_of_birth\": \"1987-04-12\", \"street_address\": \"12 Garden Road, flat 4\", \"preferred_language\": "
     "\"Polish\", "
     "\"postal_code\": 30042, \"country_code\": \"AT\", \"order_quantity\": 6, \"is_returning_customer\": true}"},
    {"a string of 400", "{\"type\": \"string\", \"maxLength\": 400}",
     "\"She asked whether the chairs could be delivered before noon, because the house is empty in the afternoon; "
     "caf\xc3\xa9 "
     "\xe2\x82\xac 20, na\xc3\xafve, \\\"quoted\\\" and so on until the end of this long sentence, which nobody "
     "reads.\""},
    {"free strings, recursion",
     "{\"$ref\": \"#/$defs/node\", \"$defs\": {\"node\": {\"type\": \"object\", \"properties\": {\"text\": {\"type\": "
     "\"string\"}, "
     "\"children\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/node\"}}}, \"required\": [\"text\", "
     "\"children\"]}}}",
     "{\"text\": \"The first of all of them, which has three others below\", \"children\": [{\"text\": \"the second "
     "one\", \"children\": "
     "[{\"text\": \"deeper still, and longer\", \"children\": []}]}, {\"text\": \"the last\", \"children\": []}]}"},
    {"a pattern", "{\"type\": \"string\", \"pattern\": \"^[A-Z][a-z]{2,12}( [a-z]{1,12}){3,20}[.]$\"}",
     "\"The quick brown fox jumps over the lazy dog and then sleeps for a while near the river.\""},
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void must(dt_status status, const dt_error *err) {
  if (status == DT_OK) return;
  fprintf(stderr, "bench_masks: %s\n", err->message);
  exit(1);
}

/* Compiles the schema and computes masks along the ids; took[i]: the shortest time of token i so far; *compiling: that
 * of compiling. */
static void along(const vocabulary *v, const char *schema, const int32_t *ids, int n, double *took, double *compiling) {
  dt_error err;
  char *gbnf;
  masks *m;
  double begin = now();
  must(schema_to_gbnf(schema, NULL, &gbnf, &err), &err);
  must(masks_open(v, gbnf, &m, &err), &err);
  double open = now() - begin;
  if (open < *compiling) *compiling = open;
  free(gbnf);
  int place = masks_enter(m);
  for (int i = 0; i < n; i++) {
    double start = now();
    const uint64_t *mask = masks_of_text(m, place, i == 0);
    bool allowed = mask[ids[i] / 64] >> ids[i] % 64 & 1;
    masks_take(m, place, ids[i], i == 0);
    double us = now() - start;
    must(allowed ? DT_OK : dt_fail(&err, DT_EINPUT, "the schema does not allow token %d", i), &err);
    if (us < took[i]) took[i] = us;
  }
  masks_release(m);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(const char *name, double *took, int n) {
  double all = 0;
  for (int i = 0; i < n; i++) all += took[i];
  qsort(took, (size_t)n, sizeof *took, by_size);
  printf("%s,%d,%.1f,%.1f,%.1f\n", name, n, all / n, took[n * 99 / 100], took[n - 1]);
}

/* Measures a text of at most `most` tokens, and puts its times after those of all, of which there are *n_all. Returns
 * the time of compiling. */
static double times_of(dt_pair *pair, const vocabulary *v, const char *schema, const char *text, int most, int times,
                       double *all, int *n_all) {
  dt_error err;
  int32_t *ids;
  int n;
  must(dt_encode_whole(pair, text, strlen(text), &ids, &n, &err), &err);
  if (n > most) n = most;
  if (n > TOKENS - *n_all) abort();
  double *took = all + *n_all, compiling = 1e300;
  for (int i = 0; i < n; i++) took[i] = 1e300;
  for (int i = 0; i < times; i++) along(v, schema, ids, n, took, &compiling);
  *n_all += n;
  free(ids);
  return compiling;
}

static void measure(dt_pair *pair, const vocabulary *v, const char *name, const char *schema, const char *text,
                    int times, double *all, int *n_all) {
  int before = *n_all;
  times_of(pair, v, schema, text, TOKENS, times, all, n_all);
  report(name, all + before, *n_all - before);
}

static void measure_file(dt_pair *pair, const vocabulary *v, const char *path, int most, int times, double *all) {
  static double compiling[TEXTS], first[TEXTS];
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t room = 0;
  int n_texts = 0, n_all = 0;
  if (!file) perror(path), exit(1);
  while (n_texts < TEXTS && getline(&line, &room, file) > 0) {
    cJSON *made = cJSON_Parse(line);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(made, "text"));
    char *schema = strstr(line, "\", \"schema\": "); /* no text contains this, since its quotes are escaped */
    char *end = strrchr(line, '}');
    if (!text || !schema || !end) fprintf(stderr, "bench_masks: %s: not a line of schema_texts.lua\n", path), exit(1);
    *end = '\0'; /* the schema as it is written */
    int before = n_all;
    compiling[n_texts] = times_of(pair, v, strchr(schema, ':') + 1, text, most, times, all, &n_all);
    if (n_all > before) first[n_texts++] = all[before];
    cJSON_Delete(made);
  }
  fclose(file);
  free(line);
  report("compiling", compiling, n_texts);
  report("first masks", first, n_texts);
  report("all masks", all, n_all);
}

/* A schema that is a choice among names. */
static char *enumeration(void) {
  size_t len;
  char *text;
  FILE *out = open_memstream(&text, &len);
  if (!out) abort();
  fputs("{\"enum\": [", out);
  for (int i = 0; i < NAMES; i++)
    fprintf(out, "%s\"%c%cname of number %d\"", i ? ", " : "", 'a' + i % 26, 'a' + i / 26 % 26, i);
  fputs("]}", out);
  fclose(out);
  return text;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: bench_masks MODEL [times [TEXTS [tokens]]]\n");
    return 2;
  }
  int times = argc > 2 ? atoi(argv[2]) : 9;
  dt_error err;
  dt_pair *pair;
  const vocabulary *v;
  must(dt_pair_open(&(dt_pair_options){.target = argv[1]}, &pair, &err), &err);
  must(pair_vocabulary(pair, &v, &err), &err);
  static double all[TOKENS];
  int n_all = 0;
  puts("case,tokens,us_of_a_token,p99,most");
  if (argc > 3) {
    measure_file(pair, v, argv[3], argc > 4 ? atoi(argv[4]) : 300, times, all);
    dt_pair_close(pair);
    return 0;
  }
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    measure(pair, v, given[i].name, given[i].schema, given[i].text, times, all, &n_all);
  char *names = enumeration();
  measure(pair, v, "one of 2000 names", names, "\"cdname of number 80\"", times, all, &n_all);
  free(names);
  report("all", all, n_all);
  dt_pair_close(pair);
  return 0;
}
