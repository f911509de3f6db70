/* The guide's table of families agrees with the code: each family, its names in files, the backends that support it,
 * and the models that were compared with transformers (test_golden_logits.c).
 *
 *   test_families          compares
 *   test_families print    prints the rows that the guide should have */
#include "backend/check.h"
#include "golden_logits.h"
#include "model/family.h"
#include "model/model.h"
#include "unit.h"

#include <dirent.h>

enum { MOST = 64 };

typedef struct {
  int folders, files;
  bool plain; /* a GPU supports one of them */
} compared;

static void look_at(const char *name, compared of[MOST]) {
  golden g = golden_read(name);
  model *m;
  dt_error unread;
  ok(model_open(g.model, &m, &err));
  int i = 0;
  while (family_at(i) && strcmp(family_at(i)->model_type, model_family(m))) i++;
  assert_true(i < MOST && family_at(i));
  *(model_gguf(m) ? &of[i].files : &of[i].folders) += 1;
  of[i].plain |= check_plain(model_desc(m), "a GPU", &unread) == DT_OK;
  model_close(m);
  golden_free(&g);
}

static void look_at_all(compared of[MOST]) {
  for (int i = 0; i < MOST; i++) of[i] = (compared){0};
  struct dirent **entry;
  int n = scandir(SOURCE_DIR "/tests/golden/logits", &entry, NULL, alphasort);
  assert_true(n > 2);
  for (int i = 0; i < n; i++) {
    if (entry[i]->d_name[0] != '.') look_at(entry[i]->d_name, of);
    free(entry[i]);
  }
  free(entry);
}

static char *row_of(const family *f, const compared *c, char row[256]) {
  char in_gguf[64] = "";
  if (f->gguf) snprintf(in_gguf, sizeof in_gguf, "`%s`", f->gguf);
  snprintf(row, 256, "| `%s` | `%s` | %s | %s | %d, %d |\n", f->model_type, f->architecture, in_gguf,
           c->plain ? "CPU, GPU" : "CPU", c->folders, c->files);
  return row;
}

static void the_guide_has_a_row_for_each_family(void **state) {
  (void)state;
  compared of[MOST];
  look_at_all(of);
  size_t size;
  char *guide = golden_bytes(SOURCE_DIR "/models", "README.md", &size), row[256];
  int rows = 0;
  for (const char *at = guide; (at = strstr(at, "| CPU")); at++) rows++;
  for (int i = 0; family_at(i); i++, rows--) {
    if (!strstr(guide, row_of(family_at(i), &of[i], row))) fail_msg("the guide to models lacks the row %s", row);
    assert_true(of[i].folders + of[i].files > 0);
  }
  assert_int_equal(rows, 0);
  free(guide);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "print")) {
    compared of[MOST];
    char row[256];
    look_at_all(of);
    for (int i = 0; family_at(i); i++) fputs(row_of(family_at(i), &of[i], row), stdout);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_guide_has_a_row_for_each_family)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
