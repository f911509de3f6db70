/* See match.h. */
#include "lookup/match.h"

int match_common(const int32_t *text, int length, int place, int most) {
  int n = 0;
  while (n < most && n <= place && text[place - n] == text[length - 1 - n]) n++;
  return n;
}

int match_find_end(const int32_t *text, int length, int most, int *equal) {
  int found = -1;
  *equal = 0;
  for (int place = length - 2; place >= 0 && *equal < most; place--) {
    int n = match_common(text, length, place, most);
    if (n > *equal) *equal = n, found = place;
  }
  return found;
}
