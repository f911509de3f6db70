/* Digests by libsodium: see digest.h. */
#include "system/digest.h"

#include <sodium.h>
#include <string.h>

enum { BYTES = crypto_generichash_BYTES };

_Static_assert(sizeof(digest) >= sizeof(crypto_generichash_state), "room for libsodium's state");
_Static_assert(_Alignof(digest) >= _Alignof(crypto_generichash_state), "and as it must lie");
_Static_assert(DIGEST_TEXT == 2 * BYTES + 1, "two digits a byte");

static crypto_generichash_state *state_of(digest *d) { return (crypto_generichash_state *)d->state; }

void digest_begin(digest *d, const char *kind) {
  static const unsigned char no_key[1];
  if (sodium_init() < 0) (void)0; /* it fails without random numbers, which digests do not need */
  crypto_generichash_init(state_of(d), no_key, 0, BYTES);
  digest_add_text(d, kind);
}

void digest_add(digest *d, const void *bytes, size_t n) {
  if (n) crypto_generichash_update(state_of(d), bytes, n);
}

void digest_add_text(digest *d, const char *text) { digest_add(d, text, strlen(text) + 1); }

void digest_end(digest *d, char text[DIGEST_TEXT]) {
  unsigned char bytes[BYTES];
  crypto_generichash_final(state_of(d), bytes, sizeof bytes);
  sodium_bin2hex(text, DIGEST_TEXT, bytes, sizeof bytes);
}
