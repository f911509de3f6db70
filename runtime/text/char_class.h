/* Classes of characters, as defined by the regular expressions of Hugging Face's tokenizers. */
#ifndef DT_CHAR_CLASS_H
#define DT_CHAR_CLASS_H

#include <stdbool.h>
#include <stdint.h>

/* The characters with the property White_Space, for a class in a pattern. PCRE2's own \s also matches U+180E, which has
 * not been white space since Unicode 6.3. */
#define WHITE_SPACE "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"

/* The numbers that Unicode 15 and 16 added, for a class in a pattern: Hugging Face's patterns know them, but PCRE2
 * before 10.45 does not. (Letters that PCRE2 does not know matter only if a vocabulary has merges for them.) */
#define NEW_NUMBERS                                                                                                    \
  "\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}\\x{11F50}-\\x{11F59}\\x{16130}-\\x{16139}"          \
  "\\x{16D70}-\\x{16D79}\\x{1CCF0}-\\x{1CCF9}\\x{1D2C0}-\\x{1D2D3}\\x{1E4F0}-\\x{1E4F9}\\x{1E5F1}-\\x{1E5FA}"

bool char_is_white_space(int32_t c);

/* \w: letters, marks, decimal digits, connecting punctuation, joiners. */
bool char_is_word(int32_t c);

#endif
