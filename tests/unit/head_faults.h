/* Heads that are not heads of their target: what tests of kinds of heads share. */
#ifndef DT_HEAD_FAULTS_H
#define DT_HEAD_FAULTS_H

#include "golden_logits.h"
#include "pair/pair.h"
#include "rig.h"
#include "small_tokenizer.h"

#include <sys/stat.h>

static cJSON *wanted; /* a case of a golden file */
static dt_error why;

static void write_into(const char *folder, const cJSON *of) {
  char *tokenizer = small_json(NULL, NULL);
  formula_checkpoint(folder, of);
  temp_write(folder, "tokenizer.json", tokenizer, strlen(tokenizer));
  free(tokenizer);
}

static char *folder_of(const cJSON *of) {
  char *folder = temp_folder();
  write_into(folder, of);
  return folder;
}

/* Writes the case's target and head to FOLDER/target/ and FOLDER/`name`/, for the command line. */
static void write_both(const char *folder, const char *name) {
  const char *const names[][2] = {{"target", "target"}, {"head", name}};
  for (int i = 0; i < 2; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, names[i][1]);
    mkdir(path, 0777);
    write_into(path, cJSON_GetObjectItem(wanted, names[i][0]));
  }
}

static dt_status open_pair(const cJSON *head, const char *layers, dt_pair **pair) {
  char *t = folder_of(cJSON_GetObjectItem(wanted, "target")), *h = folder_of(head);
  dt_status status = dt_pair_open(
      &(dt_pair_options){.target = t, .draft = h, .backend = "cpu", .threads = 1, .head_layers = layers}, pair, &why);
  temp_remove(t), temp_remove(h);
  return status;
}

static void expect_refused(const cJSON *head, const char *layers, const char *says) {
  dt_pair *pair;
  if (open_pair(head, layers, &pair) != DT_EINPUT) fail_msg("not refused: '%s'", says);
  if (!strstr(why.message, says)) fail_msg("'%s' does not say '%s'", why.message, says);
  assert_null(strchr(why.message, '\n'));
}

/* Each tensor of the head is needed, of which there are more than `least`. Messages leave the prefix of names out. */
static void expect_each_tensor(int least, const char *prefix) {
  const cJSON *whole = cJSON_GetObjectItem(wanted, "head");
  int n = cJSON_GetArraySize(cJSON_GetObjectItem(whole, "tensors"));
  assert_true(n > least);
  for (int i = 0; i < n; i++) {
    cJSON *head = cJSON_Duplicate(whole, true), *tensors = cJSON_GetObjectItem(head, "tensors");
    char name[128];
    snprintf(name, sizeof name, "%s", cJSON_GetArrayItem(cJSON_GetArrayItem(tensors, i), 0)->valuestring);
    cJSON_DeleteItemFromArray(tensors, i);
    expect_refused(head, NULL, strncmp(name, prefix, strlen(prefix)) ? name : name + strlen(prefix));
    cJSON_Delete(head);
  }
}

#endif
