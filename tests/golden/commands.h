/* What the programs share that check_*.py ask: standard input is a list of commands, each a line and bytes after it. */
#ifndef DT_TEST_COMMANDS_H
#define DT_TEST_COMMANDS_H

#include <stdio.h>
#include <stdlib.h>

/* The next bytes of standard input and a NUL; malloc'd. */
static inline char *read_bytes(size_t len) {
  char *bytes = malloc(len + 1);
  if (!bytes || fread(bytes, 1, len, stdin) != len) exit(1);
  bytes[len] = '\0';
  return bytes;
}

#endif
