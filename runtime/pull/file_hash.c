/* See file_hash.h. Git hashes "blob SIZE", a NUL and the bytes. */
#include "pull/file_hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHA1_TEXT = 40, SHA256_TEXT = 64, STEP = 1 << 16 };

bool file_hash_is(const char *text) {
  size_t n = strspn(text, "0123456789abcdef");
  return !text[n] && (n == SHA1_TEXT || n == SHA256_TEXT);
}

static dt_status add_bytes(EVP_MD_CTX *md, int fd, int64_t size, dt_error *err) {
  static char bytes[STEP];
  for (int64_t at = 0; at < size;) {
    ssize_t n = pread(fd, bytes, sizeof bytes, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return dt_fail(err, DT_EIO, "the downloaded file cannot be read: %s", n ? strerror(errno) : "it is shorter");
    if (!EVP_DigestUpdate(md, bytes, (size_t)n)) return dt_fail(err, DT_EIO, "libcrypto failed");
    at += n;
  }
  return DT_OK;
}

dt_status file_hash(int fd, int64_t size, const char *like, char out[FILE_HASH], dt_error *err) {
  char head[40];
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  bool git = strlen(like) == SHA1_TEXT;
  EVP_MD_CTX *md = EVP_MD_CTX_new();
  if (!md) return dt_fail_memory(err, "a hash", sizeof sum);
  dt_status status = DT_OK;
  int length = snprintf(head, sizeof head, "blob %lld", (long long)size) + 1;
  bool begun = EVP_DigestInit_ex(md, git ? EVP_sha1() : EVP_sha256(), NULL);
  if (!begun || (git && !EVP_DigestUpdate(md, head, (size_t)length))) status = dt_fail(err, DT_EIO, "libcrypto failed");
  if (!status) status = add_bytes(md, fd, size, err);
  if (!status && !EVP_DigestFinal_ex(md, sum, &n)) status = dt_fail(err, DT_EIO, "libcrypto failed");
  EVP_MD_CTX_free(md);
  for (unsigned i = 0; !status && i < n; i++) snprintf(out + 2 * i, 3, "%02x", sum[i]);
  return status;
}
