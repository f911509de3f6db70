/* Compiles the regular expressions of a tokenizer.json, which are written for Oniguruma, with PCRE2. */
#ifndef DT_PATTERN_H
#define DT_PATTERN_H

#include "system/status.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stddef.h>

/* The pattern for GPT-2's words. */
#define PATTERN_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Compiles a pattern of n bytes of UTF-8. DT_EINPUT: the pattern matches an empty text, or has a construct on which the
 * two engines differ, which the message names. Free with pcre2_code_free. */
dt_status pattern_compile(const char *pattern, size_t n, pcre2_code **out, dt_error *err);

#endif
