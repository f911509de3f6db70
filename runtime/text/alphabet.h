/* GPT-2's alphabet, in which the vocabularies of byte-level tokenizers are written. Bytes that are printable in Latin-1
 * stand for themselves; the others become U+0100, U+0101, ... in the order of the bytes. */
#ifndef DT_ALPHABET_H
#define DT_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

/* Returns the character for a byte. */
int32_t alphabet_character(unsigned char byte);

/* Writes n bytes in the alphabet; out has room for 2 n. Returns how many bytes it wrote. */
size_t alphabet_write(const char *bytes, size_t n, char *out);

/* Writes the bytes that a string (n bytes of UTF-8) stands for; out has room for n. A string with a character outside
 * the alphabet stands for itself. Returns how many bytes it wrote. */
size_t alphabet_read(const char *string, size_t n, char *out);

#endif
