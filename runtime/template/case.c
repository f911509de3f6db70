/* Cases: see case.h. */
#include "template/case.h"

#include <string.h>
#include <utf8proc.h>

typedef enum { UPPER, LOWER, TITLE } letter_case;

/* Characters that become several (Unicode's SpecialCasing.txt): upper case, title case. */
static const struct {
  const char *from, *upper, *title;
} special[] = {{"ß", "SS", "Ss"},
               {"ŉ", "ʼN", "ʼN"},
               {"ǰ", "J\314\214", "J\314\214"},
               {"ΐ", "Ι\314\210\314\201", "Ι\314\210\314\201"},
               {"ΰ", "Υ\314\210\314\201", "Υ\314\210\314\201"},
               {"և", "ԵՒ", "Եւ"},
               {"ẖ", "H\314\261", "H\314\261"},
               {"ẗ", "T\314\210", "T\314\210"},
               {"ẘ", "W\314\212", "W\314\212"},
               {"ẙ", "Y\314\212", "Y\314\212"},
               {"ẚ", "Aʾ", "Aʾ"},
               {"ὐ", "Υ\314\223", "Υ\314\223"},
               {"ὒ", "Υ\314\223\314\200", "Υ\314\223\314\200"},
               {"ὔ", "Υ\314\223\314\201", "Υ\314\223\314\201"},
               {"ὖ", "Υ\314\223\315\202", "Υ\314\223\315\202"},
               {"ᾀ", "ἈΙ", "ᾈ"},
               {"ᾁ", "ἉΙ", "ᾉ"},
               {"ᾂ", "ἊΙ", "ᾊ"},
               {"ᾃ", "ἋΙ", "ᾋ"},
               {"ᾄ", "ἌΙ", "ᾌ"},
               {"ᾅ", "ἍΙ", "ᾍ"},
               {"ᾆ", "ἎΙ", "ᾎ"},
               {"ᾇ", "ἏΙ", "ᾏ"},
               {"ᾈ", "ἈΙ", "ᾈ"},
               {"ᾉ", "ἉΙ", "ᾉ"},
               {"ᾊ", "ἊΙ", "ᾊ"},
               {"ᾋ", "ἋΙ", "ᾋ"},
               {"ᾌ", "ἌΙ", "ᾌ"},
               {"ᾍ", "ἍΙ", "ᾍ"},
               {"ᾎ", "ἎΙ", "ᾎ"},
               {"ᾏ", "ἏΙ", "ᾏ"},
               {"ᾐ", "ἨΙ", "ᾘ"},
               {"ᾑ", "ἩΙ", "ᾙ"},
               {"ᾒ", "ἪΙ", "ᾚ"},
               {"ᾓ", "ἫΙ", "ᾛ"},
               {"ᾔ", "ἬΙ", "ᾜ"},
               {"ᾕ", "ἭΙ", "ᾝ"},
               {"ᾖ", "ἮΙ", "ᾞ"},
               {"ᾗ", "ἯΙ", "ᾟ"},
               {"ᾘ", "ἨΙ", "ᾘ"},
               {"ᾙ", "ἩΙ", "ᾙ"},
               {"ᾚ", "ἪΙ", "ᾚ"},
               {"ᾛ", "ἫΙ", "ᾛ"},
               {"ᾜ", "ἬΙ", "ᾜ"},
               {"ᾝ", "ἭΙ", "ᾝ"},
               {"ᾞ", "ἮΙ", "ᾞ"},
               {"ᾟ", "ἯΙ", "ᾟ"},
               {"ᾠ", "ὨΙ", "ᾨ"},
               {"ᾡ", "ὩΙ", "ᾩ"},
               {"ᾢ", "ὪΙ", "ᾪ"},
               {"ᾣ", "ὫΙ", "ᾫ"},
               {"ᾤ", "ὬΙ", "ᾬ"},
               {"ᾥ", "ὭΙ", "ᾭ"},
               {"ᾦ", "ὮΙ", "ᾮ"},
               {"ᾧ", "ὯΙ", "ᾯ"},
               {"ᾨ", "ὨΙ", "ᾨ"},
               {"ᾩ", "ὩΙ", "ᾩ"},
               {"ᾪ", "ὪΙ", "ᾪ"},
               {"ᾫ", "ὫΙ", "ᾫ"},
               {"ᾬ", "ὬΙ", "ᾬ"},
               {"ᾭ", "ὭΙ", "ᾭ"},
               {"ᾮ", "ὮΙ", "ᾮ"},
               {"ᾯ", "ὯΙ", "ᾯ"},
               {"ᾲ", "ᾺΙ", "Ὰ\315\205"},
               {"ᾳ", "ΑΙ", "ᾼ"},
               {"ᾴ", "ΆΙ", "Ά\315\205"},
               {"ᾶ", "Α\315\202", "Α\315\202"},
               {"ᾷ", "Α\315\202Ι", "Α\315\202\315\205"},
               {"ᾼ", "ΑΙ", "ᾼ"},
               {"ῂ", "ῊΙ", "Ὴ\315\205"},
               {"ῃ", "ΗΙ", "ῌ"},
               {"ῄ", "ΉΙ", "Ή\315\205"},
               {"ῆ", "Η\315\202", "Η\315\202"},
               {"ῇ", "Η\315\202Ι", "Η\315\202\315\205"},
               {"ῌ", "ΗΙ", "ῌ"},
               {"ῒ", "Ι\314\210\314\200", "Ι\314\210\314\200"},
               {"ΐ", "Ι\314\210\314\201", "Ι\314\210\314\201"},
               {"ῖ", "Ι\315\202", "Ι\315\202"},
               {"ῗ", "Ι\314\210\315\202", "Ι\314\210\315\202"},
               {"ῢ", "Υ\314\210\314\200", "Υ\314\210\314\200"},
               {"ΰ", "Υ\314\210\314\201", "Υ\314\210\314\201"},
               {"ῤ", "Ρ\314\223", "Ρ\314\223"},
               {"ῦ", "Υ\315\202", "Υ\315\202"},
               {"ῧ", "Υ\314\210\315\202", "Υ\314\210\315\202"},
               {"ῲ", "ῺΙ", "Ὼ\315\205"},
               {"ῳ", "ΩΙ", "ῼ"},
               {"ῴ", "ΏΙ", "Ώ\315\205"},
               {"ῶ", "Ω\315\202", "Ω\315\202"},
               {"ῷ", "Ω\315\202Ι", "Ω\315\202\315\205"},
               {"ῼ", "ΩΙ", "ῼ"},
               {"ﬀ", "FF", "Ff"},
               {"ﬁ", "FI", "Fi"},
               {"ﬂ", "FL", "Fl"},
               {"ﬃ", "FFI", "Ffi"},
               {"ﬄ", "FFL", "Ffl"},
               {"ﬅ", "ST", "St"},
               {"ﬆ", "ST", "St"},
               {"ﬓ", "ՄՆ", "Մն"},
               {"ﬔ", "ՄԵ", "Մե"},
               {"ﬕ", "ՄԻ", "Մի"},
               {"ﬖ", "ՎՆ", "Վն"},
               {"ﬗ", "ՄԽ", "Մխ"}};

bool tpl_is_cased(int32_t c) {
  utf8proc_category_t kind = utf8proc_category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT;
}

static bool is_ignored(int32_t c) {
  if (c < 0x80) return strchr("'.:^`", c) && c;
  switch (utf8proc_category(c)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK: return true;
  default: return c == 0xB7 || c == 0x2019;
  }
}

/* Whether a sigma ends a word. */
static bool ends_word(const tpl_string *s, size_t at, size_t len) {
  size_t i = at, n;
  do {
    if (i == 0) return false;
    i = tpl_before(s, i);
  } while (is_ignored(tpl_character(s, i, &n)));
  if (!tpl_is_cased(tpl_character(s, i, &n))) return false;
  for (i = at + len; i < s->len && is_ignored(tpl_character(s, i, &n)); i += n) {}
  return i == s->len || !tpl_is_cased(tpl_character(s, i, &n));
}

static const char *special_case(const char *bytes, size_t len, letter_case to) {
  if (to == LOWER) return len == 2 && memcmp(bytes, "İ", 2) == 0 ? "i\314\207" : NULL;
  for (size_t i = 0; len > 1 && i < sizeof special / sizeof *special; i++)
    if (strlen(special[i].from) == len && memcmp(special[i].from, bytes, len) == 0)
      return to == UPPER ? special[i].upper : special[i].title;
  return NULL;
}

/* Adds the character at `at`, converted. */
static void add_in_case(tpl_builder *b, const tpl_string *s, size_t at, size_t len, int32_t c, letter_case to) {
  char text[4];
  bool marked = tpl_is_marked(s, at);
  const char *several = special_case(s->bytes + at, len, to);
  if (several) {
    tpl_add(b, several, strlen(several), marked);
    return;
  }
  int32_t changed = to == UPPER ? utf8proc_toupper(c) : to == LOWER ? utf8proc_tolower(c) : utf8proc_totitle(c);
  if (c == 0x3A3 && to == LOWER && ends_word(s, at, len)) changed = 0x3C2;
  if (changed == c)
    tpl_add_part(b, s, at, at + len);
  else
    tpl_add(b, text, tpl_encode(changed, text), marked);
}

/* Chooses the case of a character by the one before it. */
typedef letter_case choose_case(int32_t c, int32_t before, bool first);

static const tpl_string *in_case(tpl_job *job, const tpl_string *s, choose_case *choose) {
  tpl_builder b = {.job = job, .safe = s->safe};
  int32_t before = 0;
  tpl_charge_characters(job, s->len);
  for (size_t at = 0, len; at < s->len; at += len) {
    int32_t c = tpl_character(s, at, &len);
    add_in_case(&b, s, at, len, c, choose(c, before, at == 0));
    before = c;
  }
  return tpl_built(&b);
}

static letter_case always_upper(int32_t c, int32_t before, bool first) {
  return (void)c, (void)before, (void)first, UPPER;
}
static letter_case always_lower(int32_t c, int32_t before, bool first) {
  return (void)c, (void)before, (void)first, LOWER;
}

static letter_case first_title(int32_t c, int32_t before, bool first) {
  (void)c, (void)before;
  return first ? TITLE : LOWER;
}

static letter_case title_behind_uncased(int32_t c, int32_t before, bool first) {
  (void)c;
  return first || !tpl_is_cased(before) ? TITLE : LOWER;
}

static letter_case upper_behind_gap(int32_t c, int32_t before, bool first) {
  (void)c;
  return first || tpl_is_space(before) || (before && before < 0x80 && strchr("-({[<", before)) ? UPPER : LOWER;
}

static letter_case the_other(int32_t c, int32_t before, bool first) {
  (void)before, (void)first;
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LU ? LOWER : UPPER;
}

const tpl_string *tpl_upper(tpl_job *job, const tpl_string *s) { return in_case(job, s, always_upper); }
const tpl_string *tpl_lower(tpl_job *job, const tpl_string *s) { return in_case(job, s, always_lower); }
const tpl_string *tpl_capitalize(tpl_job *job, const tpl_string *s) { return in_case(job, s, first_title); }
const tpl_string *tpl_title(tpl_job *job, const tpl_string *s) { return in_case(job, s, title_behind_uncased); }
const tpl_string *tpl_title_filter(tpl_job *job, const tpl_string *s) { return in_case(job, s, upper_behind_gap); }
const tpl_string *tpl_swap_case(tpl_job *job, const tpl_string *s) { return in_case(job, s, the_other); }

static bool is_all(tpl_job *job, const tpl_string *s, utf8proc_category_t category) {
  bool any = false;
  tpl_charge_characters(job, s->len);
  for (size_t at = 0, len; at < s->len; at += len) {
    int32_t c = tpl_character(s, at, &len);
    if (!tpl_is_cased(c)) continue;
    if (utf8proc_category(c) != category) return false;
    any = true;
  }
  return any;
}

bool tpl_is_lower(tpl_job *job, const tpl_string *s) { return is_all(job, s, UTF8PROC_CATEGORY_LL); }
bool tpl_is_upper(tpl_job *job, const tpl_string *s) { return is_all(job, s, UTF8PROC_CATEGORY_LU); }
