/* Any bytes as the list of a repository's files. What is accepted stays below its folder. */
#include "fuzz.h"

#include "pull/listing.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  listing l;
  dt_error err;
  const char *file;
  if (!listing_read("o/n", (const char *)bytes, size, &l, &err)) {
    listing_choose(&l, "o/n", "Q8_0", &file, &err);
    listing_choose(&l, "o/n", NULL, &file, &err);
    for (int i = 0; i < l.n; i++) {
      char path[1100];
      snprintf(path, sizeof path, "/%s/", l.names[i]);
      if (strstr(path, "/../") || strstr(path, "//")) __builtin_trap();
    }
  }
  listing_free(&l);
  return 0;
}
