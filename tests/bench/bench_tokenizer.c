/* Encoding speed: bench_tokenizer TOKENIZER.JSON TEXT-FILE [times]. Prints the best of several runs, and a hash of the
 * ids, which shows whether two builds do the same work. */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_all(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END) != 0) return NULL;
  long size = ftell(f);
  rewind(f);
  char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
  if (text) *n = fread(text, 1, (size_t)size, f);
  fclose(f);
  return text;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: bench_tokenizer TOKENIZER.JSON TEXT-FILE [times]\n");
    return 2;
  }
  int times = argc > 3 ? atoi(argv[3]) : 5;
  tok *t = NULL;
  dt_error err;
  size_t len = 0;
  double opening = now();
  if (tok_open(argv[1], &t, &err) != DT_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 2;
  }
  opening = now() - opening;
  char *text = read_all(argv[2], &len);
  if (!text) {
    fprintf(stderr, "%s: cannot read the file\n", argv[2]);
    tok_close(t);
    return 2;
  }
  double best = 1e300;
  int n = 0, status = 0;
  unsigned long long hash = 0xCBF29CE484222325u;
  for (int i = 0; i < times; i++) {
    int32_t *ids = NULL;
    double start = now();
    if (tok_encode(t, text, len, false, &ids, &n, &err) != DT_OK) {
      fprintf(stderr, "%s\n", err.message);
      status = 1;
      break;
    }
    double took = now() - start;
    if (took < best) best = took;
    for (int k = 0; i == 0 && k < n; k++) hash = (hash ^ (unsigned)ids[k]) * 0x100000001B3u;
    free(ids);
  }
  if (status == 0)
    printf("bytes %zu, tokens %d, open %.1f ms, encode %.1f ms, %.1f MB/s, hash %016llx\n", len, n, 1e3 * opening,
           1e3 * best, (double)len / best / 1e6, hash);
  free(text);
  tok_close(t);
  return status;
}
