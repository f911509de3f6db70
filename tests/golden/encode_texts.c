/* For check_tokenizers.py: encode_texts TOKENIZER.JSON|MODEL.GGUF begin|plain. Standard input has texts, each after its
 * length (u32). For each text prints a line: its ids, a tab, and in hexadecimal the text that these ids decode to. The
 * first line has the number of ids, the ids that end a text, and the fingerprint. */
#include "text/load_gguf.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status open_tokenizer(const char *path, tok **t, dt_error *err) {
  size_t len = strlen(path);
  if (len < 5 || strcmp(path + len - 5, ".gguf") != 0) return tok_open(path, t, err);
  gguf *g;
  dt_status status = gguf_open(path, &g, err);
  if (status) return status;
  status = tok_open_gguf(g, t, err);
  gguf_close(g);
  return status;
}

static dt_status put_text(const tok *t, const char *text, size_t n, bool begin, dt_error *err) {
  int32_t *ids;
  int n_ids;
  dt_status status = tok_encode(t, text, n, begin, &ids, &n_ids, err);
  if (status) return status;
  for (int i = 0; i < n_ids; i++) printf("%d ", ids[i]);
  printf("\t");
  for (int i = 0; i < n_ids; i++) {
    size_t len;
    const char *bytes = tok_bytes(t, ids[i], i == 0, &len);
    for (size_t k = 0; k < len; k++) printf("%02x", (unsigned char)bytes[k]);
  }
  printf("\n");
  free(ids);
  return DT_OK;
}

int main(int argc, char **argv) {
  tok *t;
  dt_error err;
  uint32_t n;
  if (argc != 3) {
    fprintf(stderr, "usage: encode_texts TOKENIZER.JSON|MODEL.GGUF begin|plain\n");
    return 2;
  }
  dt_status status = open_tokenizer(argv[1], &t, &err);
  if (status) {
    fprintf(stderr, "%s\n", err.message);
    return 2;
  }
  int n_ends;
  const int32_t *ends = tok_ends(t, &n_ends);
  printf("%d\t", tok_size(t));
  for (int i = 0; i < n_ends; i++) printf("%d ", ends[i]);
  printf("\t%016llx\n", (unsigned long long)tok_fingerprint(t));
  while (!status && fread(&n, sizeof n, 1, stdin) == 1) {
    char *text = malloc(n + 1);
    if (!text || fread(text, 1, n, stdin) != n) return 2;
    status = put_text(t, text, n, strcmp(argv[2], "begin") == 0, &err);
    free(text);
  }
  if (status) fprintf(stderr, "%s\n", err.message);
  tok_close(t);
  return status ? 2 : 0;
}
