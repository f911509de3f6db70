/* GPT-2's alphabet, in which the vocabularies of byte-level tokenizers are written: bytes that are printable in Latin-1
 * are themselves, the others are U+0100, U+0101, ... in order of the byte. */
#ifndef DT_ALPHABET_H
#define DT_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

/* The character of a byte. */
int32_t alphabet_character(unsigned char byte);

/* Writes n bytes in the alphabet; out has room for 2 n. Returns how many bytes it wrote. */
size_t alphabet_write(const char *bytes, size_t n, char *out);

/* Writes the bytes that a string of n bytes of UTF-8 stands for; out has room for n. A string with a character outside
 * of the alphabet stands for itself. */
size_t alphabet_read(const char *string, size_t n, char *out);

#endif
