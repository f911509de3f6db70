/* The files of a model's repository, and those among them that dtrun needs. */
#ifndef PULL_LISTING_H
#define PULL_LISTING_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>

#define LISTING_COMMIT 65 /* bytes of a commit's name */

typedef struct {
  char commit[LISTING_COMMIT];
  char **names; /* [n] paths below the repository; none climbs out of a folder */
  bool *wanted; /* [n] */
  int n;
} listing;

/* ORG/NAME as Hugging Face has ids: two words of letters, digits, '-', '_' and '.', which neither begins with. */
bool listing_is_id(const char *id);

/* Reads {"sha": COMMIT, "siblings": [{"rfilename": NAME}, ..]}, the answer of /api/models/ID/revision/main; nothing is
 * wanted yet. To be freed with listing_free, after a failure too. */
dt_status listing_read(const char *id, const char *json, size_t len, listing *out, dt_error *err);

/* Marks the files to download: the .gguf file that `spec` means (gguf_name.h); without a spec a model in safetensors
 * with its configuration and tokenizer, else the only .gguf file or the one of GGUF_DEFAULT. *file: the .gguf file's
 * name; NULL: safetensors. DT_EINPUT: no such file; the message lists the files. */
dt_status listing_choose(listing *l, const char *id, const char *spec, const char **file, dt_error *err);

void listing_free(listing *l);

#endif
