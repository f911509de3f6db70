/* The files of a model's repository, and which of them dtrun needs. */
#ifndef PULL_LISTING_H
#define PULL_LISTING_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>

#define LISTING_COMMIT 65 /* size of a commit's name */

typedef struct {
  char commit[LISTING_COMMIT];
  char **names; /* [n] paths relative to the repository; checked not to leave it */
  bool *wanted; /* [n] */
  int n;
} listing;

/* Returns whether it is an id of Hugging Face, ORG/NAME: two words of letters, digits, '-', '_' and '.', which do not
 * begin with one of these three. */
bool listing_is_id(const char *id);

/* Reads {"sha": COMMIT, "siblings": [{"rfilename": NAME}, ..]}, the answer of /api/models/ID/revision/main. No file is
 * marked as wanted yet. Free it with listing_free, even after a failure. */
dt_status listing_read(const char *id, const char *json, size_t len, listing *out, dt_error *err);

/* Marks the files to download: the .gguf file that `spec` means (gguf_name.h). Without a spec these are the safetensors
 * with configuration and tokenizer or, if there are none, the only .gguf file or the one that GGUF_DEFAULT means. *file
 * is the name of the .gguf file; NULL: safetensors. DT_EINPUT: there is no such file; the message lists the files. */
dt_status listing_choose(listing *l, const char *id, const char *spec, const char **file, dt_error *err);

void listing_free(listing *l);

#endif
