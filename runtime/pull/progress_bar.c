/* See progress_bar.h. */
#include "pull/progress_bar.h"

#include "system/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30, LARGE = 10000000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

const char *size_text(int64_t bytes, char out[SIZE_TEXT]) {
  if (bytes < 10000)
    snprintf(out, SIZE_TEXT, "%d bytes", (int)bytes);
  else if (bytes < 1000000000)
    snprintf(out, SIZE_TEXT, "%.1f MB", (double)bytes / 1e6);
  else
    snprintf(out, SIZE_TEXT, "%.2f GB", (double)bytes / 1e9);
  return out;
}

void say(const char *format, ...) {
  char line[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  dt_clean(line);
  fprintf(stderr, "dtrun: %s\n", line);
}

shown shown_begin(const char *name, int64_t size, int64_t have) {
  shown s = {.name = name, .size = size, .first = have, .bar = isatty(STDERR_FILENO), .began = now()};
  s.tenth = size ? (int)(10 * have / size) : 10;
  char all[SIZE_TEXT], here[SIZE_TEXT];
  if (!s.bar && have)
    say("%s: %s, continues at %s", name, size_text(size, all), size_text(have, here));
  else if (!s.bar)
    say("%s: %s", name, size_text(size, all));
  return s;
}

static void draw(const shown *s, int64_t have, double rate) {
  char bar[WIDTH + 1];
  int full = (int)(s->size ? WIDTH * have / s->size : WIDTH);
  for (int i = 0; i < WIDTH; i++) bar[i] = i < full ? '#' : '.';
  bar[WIDTH] = '\0';
  char all[SIZE_TEXT], here[SIZE_TEXT];
  fprintf(stderr, "\r\033[K%.40s [%s] %s of %s, %.1f MB/s", s->name, bar, size_text(have, here),
          size_text(s->size, all), rate / 1e6);
}

void shown_at(shown *s, int64_t have) {
  double t = now();
  int tenth = s->size ? (int)(10 * have / s->size) : 10;
  if (s->bar && (t - s->told_at > 0.1 || have == s->size)) {
    draw(s, have, t > s->began ? (double)(have - s->first) / (t - s->began) : 0);
    s->told_at = t;
  } else if (!s->bar && s->size >= LARGE && tenth > s->tenth) {
    say("%s: %d %%", s->name, 10 * tenth);
  }
  s->tenth = tenth;
}

void shown_end(shown *s) {
  if (s->bar && s->told_at > 0) fputc('\n', stderr);
  s->bar = false;
}
