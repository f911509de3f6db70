/* Ranks with copies of a model: if a single byte differs, wherever it is, this is reported before anything is
 * computed. */
#include "cpu/cpu.h"
#include "gguf_file.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "ranks/call.h"
#include "ranks/witness.h"
#include "temp_files.h"
#include "thread_ranks.h"
#include "unit.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const files[] = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"};
enum { FILES = sizeof files / sizeof *files };

typedef struct {
  const char *folder[MOST_RANKS]; /* each rank's copy */
  dt_status status[MOST_RANKS];
  char message[MOST_RANKS][512];
} trial;

static void load(dt_ranks *ranks, void *context) {
  trial *t = context;
  call_site site = {.ranks = ranks};
  model *m = NULL;
  dt_model_desc desc;
  dt_error e = {.status = DT_OK};
  int backend, weights;
  call open = {.kind = CALL_OPEN, .n = 1, .version = dt_version()};
  if (call_make(&site, &open, &backend, &e) || model_open(t->folder[ranks->rank], &m, &e)) abort();
  desc = *model_desc(m), desc.path = t->folder[ranks->rank];
  call c = {.kind = CALL_UPLOAD, .on = backend, .path = desc.path, .signature = call_signature(&desc)};
  if (!ranks->rank) c.desc = &desc;
  t->status[ranks->rank] = call_make(&site, &c, &weights, &e);
  snprintf(t->message[ranks->rank], 512, "%s", t->status[ranks->rank] ? e.message : "");
  if (!t->status[ranks->rank]) call_make(&site, &(call){.kind = CALL_FREE_WEIGHTS, .on = weights}, &weights, NULL);
  call_make(&site, &(call){.kind = CALL_CLOSE, .on = backend}, &backend, NULL);
  model_close(m);
  free(site.made);
}

/* A file of mini-target, malloc'd; NULL if there is none of that name. */
static char *bytes_of(const char *name, size_t *n) {
  char path[300];
  snprintf(path, sizeof path, SOURCE_DIR "/models/mini-target/%s", name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *n = (size_t)ftell(file);
  char *bytes = malloc(*n);
  rewind(file);
  assert_int_equal(fread(bytes, 1, *n, file), *n);
  fclose(file);
  return bytes;
}

static char *copy_model(void) {
  char *folder = temp_folder();
  for (int i = 0; i < FILES; i++) {
    size_t n;
    char *bytes = bytes_of(files[i], &n);
    if (bytes) temp_write(folder, files[i], bytes, n);
    free(bytes);
  }
  return folder;
}

static void flip(const char *folder, const char *name, uint64_t at) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r+b");
  fseek(file, (long)at, SEEK_SET);
  int byte = fgetc(file);
  fseek(file, (long)at, SEEK_SET);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void copies_that_are_the_same_are_taken(void **state) {
  (void)state;
  char *a = copy_model(), *b = copy_model();
  trial t = {.folder = {a, b, a}};
  run_ranks(3, load, &t);
  for (int i = 0; i < 3; i++) assert_string_equal(t.message[i], "");
  temp_remove(a), temp_remove(b);
}

/* Checks that all ranks report `what` and name the last of `ranks` ranks, which is the odd one as seen from rank 0. */
static void told_by(int ranks, trial *t, const char *what) {
  char whose[20];
  snprintf(whose, sizeof whose, "rank %d on ", ranks - 1);
  run_ranks(ranks, load, t);
  for (int i = 0; i < ranks; i++) {
    if (!strstr(t->message[i], what) || !strstr(t->message[i], whose)) fail_msg("%s: %s", what, t->message[i]);
    assert_int_equal(t->status[i], DT_EINPUT);
  }
}

static void told(trial *t, const char *what) { told_by(2, t, what); }

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *folder;
  witness_record *record; /* [n] the bytes that rank 1 of two reads */
  size_t n;
} reads;

static void note_reads(dt_ranks *ranks, void *context) {
  reads *r = context;
  dt_error e;
  model *m;
  witness w;
  dt_backend *backend;
  dt_weights *weights;
  if (model_open(r->folder, &m, &e) || witness_open(model_desc(m), &w, &e)) abort();
  w.desc.path = r->folder;
  keyed_new_key(w.key), witness_begin(&w);
  if (dt_cpu_ops.open(&(dt_backend_options){.threads = 1, .ranks = ranks}, &backend, &e)) abort();
  if (dt_cpu_ops.upload(backend, &w.desc, NULL, &weights, &e) || w.lost) abort();
  dt_cpu_ops.free_weights(weights);
  dt_cpu_ops.close(backend);
  if (ranks->rank) r->record = w.record, r->n = w.n, w.record = NULL;
  witness_close(&w);
  model_close(m);
}

static bool is_read(const reads *r, uint64_t at) {
  for (size_t i = 0; i < r->n; i++)
    if (at >= r->record[i].offset && at < r->record[i].offset + r->record[i].bytes) return true;
  return false;
}

/* Changes the first, the middle and the last byte of each tensor, in the copy of either rank in turn. This is reported
 * if rank 1 computes with the byte, which is the case for some bytes of any tensor. */
static void a_byte_of_any_tensor_is_told(void **state) {
  (void)state;
  char *copy[] = {copy_model(), copy_model()};
  st *s;
  int tensors = 0;
  reads of_rank_1 = {.folder = copy[0]};
  run_ranks(2, note_reads, &of_rank_1);
  ok(st_open_folder(copy[0], &s, &err));
  char path[300];
  struct stat info;
  snprintf(path, sizeof path, "%s/model.safetensors", copy[0]);
  assert_int_equal(stat(path, &info), 0);
  for (uint64_t at = 0, size = (uint64_t)info.st_size; at < size;) {
    const char *name = st_tensor_at(s, path, at);
    if (!name) {
      at++;
      continue;
    }
    const st_tensor *tensor = st_find(s, name);
    const uint64_t place[] = {0, tensor->size / 2, tensor->size - 1};
    int some = 0;
    for (int i = 0; i < 3; i++) {
      const char *bad = copy[(tensors + i) % 2];
      trial t = {.folder = {copy[0], copy[1]}};
      flip(bad, "model.safetensors", tensor->offset + place[i]);
      if (is_read(&of_rank_1, tensor->offset + place[i])) {
        told(&t, name);
        some++;
      } else {
        run_ranks(2, load, &t);
        assert_string_equal(t.message[0], "");
      }
      flip(bad, "model.safetensors", tensor->offset + place[i]);
    }
    if (!some) fail_msg("no changed byte of %s is reported", name);
    tensors++;
    at = tensor->offset + tensor->size;
  }
  assert_true(tensors > 10);
  free(of_rank_1.record);
  st_close(s);
  temp_remove(copy[0]), temp_remove(copy[1]);
}

/* Replaces a digit by another one, so that the file can still be read. */
static void a_byte_of_configuration_and_tokenizer_is_told(void **state) {
  (void)state;
  char *copy[] = {copy_model(), copy_model()};
  FILE *more = NULL;
  char path[300];
  for (int i = 0; i < FILES; i++) {
    if (!strcmp(files[i], "model.safetensors")) continue;
    snprintf(path, sizeof path, "%s/%s", copy[1], files[i]);
    bool there = !access(path, F_OK);
    more = fopen(path, "ab");
    fputs(there ? "\n" : "{}", more), fclose(more);
    told(&(trial){.folder = {copy[0], copy[1]}}, files[i]);
    snprintf(path, sizeof path, "%s/%s", copy[0], files[i]);
    more = fopen(path, "ab");
    fputs(there ? "\n" : "{}", more), fclose(more);
  }
  temp_remove(copy[0]), temp_remove(copy[1]);
}

static void the_odd_one_of_four_is_told(void **state) {
  (void)state;
  char *copy[] = {copy_model(), copy_model(), copy_model()};
  st *s;
  ok(st_open_folder(copy[0], &s, &err));
  const char *name = "gpt_neox.layers.0.mlp.dense_h_to_4h.weight";
  const st_tensor *tensor = st_find(s, name);
  const uint64_t place[] = {tensor->offset + tensor->size / 4 * 3, tensor->offset + tensor->size - 1};
  for (int i = 0; i < 2; i++) {
    flip(copy[2], "model.safetensors", place[i]);
    told_by(4, &(trial){.folder = {copy[0], copy[1], copy[1], copy[2]}}, name);
    told_by(4, &(trial){.folder = {copy[0], copy[0], copy[1], copy[2]}}, name); /* ranks 0 and 1 share the work */
    flip(copy[2], "model.safetensors", place[i]);
  }
  st_close(s);
  for (int i = 0; i < 3; i++) temp_remove(copy[i]);
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static const char *const shard_name[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};

/* Writes mini-target as two files: the first half of its tensors, and the others. */
static char *shard_model(void) {
  char *folder = copy_model(), path[300];
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  remove(path);
  size_t n;
  uint64_t length;
  char *bytes = bytes_of("model.safetensors", &n);
  memcpy(&length, bytes, sizeof length);
  cJSON *header = cJSON_ParseWithLength(bytes + 8, length), *index = cJSON_CreateObject(), *tensor;
  cJSON *map = cJSON_AddObjectToObject(index, "weight_map"), *half[2] = {cJSON_CreateObject(), cJSON_CreateObject()};
  gguf_file data[2] = {{0}}, file;
  int seen = 0, count = cJSON_GetArraySize(header);
  cJSON_ArrayForEach(tensor, header) {
    int which = 2 * seen++ >= count;
    const cJSON *place = cJSON_GetObjectItem(tensor, "data_offsets");
    if (!place) continue;
    size_t first = (size_t)cJSON_GetArrayItem(place, 0)->valuedouble;
    size_t last = (size_t)cJSON_GetArrayItem(place, 1)->valuedouble;
    const double moved[] = {(double)data[which].size, (double)(data[which].size + last - first)};
    file_put(&data[which], bytes + 8 + length + first, last - first);
    cJSON *copy = cJSON_Duplicate(tensor, true);
    cJSON_ReplaceItemInObject(copy, "data_offsets", cJSON_CreateDoubleArray(moved, 2));
    cJSON_AddItemToObject(half[which], tensor->string, copy);
    cJSON_AddStringToObject(map, tensor->string, shard_name[which]);
  }
  for (int i = 0; i < 2; i++) {
    char *text = cJSON_PrintUnformatted(half[i]);
    file = (gguf_file){0};
    file_u64(&file, strlen(text));
    file_put(&file, text, strlen(text));
    file_put(&file, data[i].bytes, data[i].size);
    temp_write(folder, shard_name[i], file.bytes, file.size);
    free(text), free(file.bytes), free(data[i].bytes), cJSON_Delete(half[i]);
  }
  char *text = cJSON_PrintUnformatted(index);
  temp_write(folder, "model.safetensors.index.json", text, strlen(text));
  free(text), free(bytes), cJSON_Delete(index), cJSON_Delete(header);
  return folder;
}

static void a_byte_of_either_shard_is_told(void **state) {
  (void)state;
  char *copy[] = {shard_model(), shard_model()}, where[200];
  trial same = {.folder = {copy[0], copy[1]}};
  run_ranks(2, load, &same);
  assert_string_equal(same.message[0], "");
  st *s;
  ok(st_open_folder(copy[0], &s, &err));
  const char *name[] = {"gpt_neox.embed_in.weight", "gpt_neox.layers.5.mlp.dense_4h_to_h.weight"};
  for (int shard = 0; shard < 2; shard++) {
    const st_tensor *tensor = st_find(s, name[shard]);
    assert_non_null(strstr(tensor->source->name, shard_name[shard]));
    snprintf(where, sizeof where, "%s: tensor %s", shard_name[shard], name[shard]);
    for (int i = 0; i < 2; i++) { /* in the rows of rank 1, which are the second half */
      uint64_t at = tensor->offset + tensor->size / 2 + (uint64_t)i * (tensor->size / 2 - 1);
      flip(copy[1], shard_name[shard], at);
      told(&(trial){.folder = {copy[0], copy[1]}}, where);
      flip(copy[1], shard_name[shard], at);
    }
  }
  st_close(s);
  temp_remove(copy[0]), temp_remove(copy[1]);
}

/* ---- GGUF -------------------------------------------------------------------------------------------------------- */

enum { VOCAB = 512, HIDDEN = 64, INTER = 128, HEADS = 2, PAIRS = HIDDEN / HEADS / 2, F32 = 0 };

typedef struct {
  uint64_t base, epsilon, stretch; /* where these are in the file */
} places;

/* Writes a llama of one layer, with rope_freqs as the first or the last of its tensors. */
static places write_gguf(const char *folder, bool first) {
  static const struct {
    const char *name;
    uint64_t ne0, ne1;
  } tensors[] = {{"rope_freqs.weight", PAIRS, 0},         {"token_embd.weight", HIDDEN, VOCAB},
                 {"output_norm.weight", HIDDEN, 0},       {"blk.0.attn_norm.weight", HIDDEN, 0},
                 {"blk.0.attn_q.weight", HIDDEN, HIDDEN}, {"blk.0.attn_k.weight", HIDDEN, HIDDEN},
                 {"blk.0.attn_v.weight", HIDDEN, HIDDEN}, {"blk.0.attn_output.weight", HIDDEN, HIDDEN},
                 {"blk.0.ffn_norm.weight", HIDDEN, 0},    {"blk.0.ffn_gate.weight", HIDDEN, INTER},
                 {"blk.0.ffn_up.weight", HIDDEN, INTER},  {"blk.0.ffn_down.weight", INTER, HIDDEN}};
  enum { TENSORS = sizeof tensors / sizeof *tensors, KEYS = 11 };
  gguf_file f = {0};
  places at;
  file_head(&f, 3, TENSORS, KEYS);
  file_key_string(&f, "general.architecture", "llama");
  file_key_u32(&f, "llama.vocab_size", VOCAB);
  file_key_u32(&f, "llama.embedding_length", HIDDEN);
  file_key_u32(&f, "llama.block_count", 1);
  file_key_u32(&f, "llama.feed_forward_length", INTER);
  file_key_u32(&f, "llama.context_length", 64);
  file_key_u32(&f, "llama.attention.head_count", HEADS);
  file_key_u32(&f, "llama.rope.dimension_count", 2 * PAIRS);
  file_key_f32(&f, "llama.rope.freq_base", 10000);
  at.base = f.size - 4;
  file_key_f32(&f, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  at.epsilon = f.size - 4;
  file_key_u32(&f, "tokenizer.ggml.eos_token_id", 0);
  size_t size = 0, stretch = 0;
  for (int i = 0; i < TENSORS; i++) {
    int k = first ? i : (i + 1) % TENSORS;
    if (!k) stretch = size;
    file_tensor(&f, tensors[k].name, F32, tensors[k].ne0, tensors[k].ne1, size);
    size += 4 * tensors[k].ne0 * (tensors[k].ne1 ? tensors[k].ne1 : 1);
  }
  file_data(&f, 32, size);
  at.stretch = f.size - size + stretch;
  for (size_t i = 0; i < size; i += 4) memcpy(f.bytes + f.size - size + i, &(float){1}, 4);
  temp_write(folder, "m.gguf", f.bytes, f.size);
  free(f.bytes);
  return at;
}

static void a_byte_of_a_gguf_beside_its_matrices_is_told(void **state) {
  (void)state;
  char *copy[] = {temp_folder(), temp_folder()}, path[2][300];
  for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s/m.gguf", copy[i]);
  for (int first = 0; first < 2; first++) {
    places at = write_gguf(copy[0], first);
    write_gguf(copy[1], first);
    trial same = {.folder = {path[0], path[1]}};
    run_ranks(2, load, &same);
    assert_string_equal(same.message[0], "");
    const struct {
      uint64_t at;
      const char *said;
    } cases[] = {
        {at.base + 2, "the header"},
        {at.epsilon + 2, "the header"},
        {at.stretch + 2, first ? "rope_freqs.weight if it comes first" : "tensor rope_freqs.weight is different from"}};
    for (int i = 0; i < 3; i++) {
      flip(copy[1], "m.gguf", cases[i].at);
      told(&(trial){.folder = {path[0], path[1]}}, cases[i].said);
      flip(copy[1], "m.gguf", cases[i].at);
    }
  }
  temp_remove(copy[0]), temp_remove(copy[1]);
}

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

/* Ranks with different processors compare each other's hashes. */
static void processors_hash_alike(void **state) {
  (void)state;
  unsigned char key[KEYED_KEY], bytes[5000];
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2")) {
    print_message("no AVX2 here: the hash that needs it is not compared\n");
    return;
  }
#endif
  keyed_new_key(key);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * i >> 3);
  for (size_t n = 0; n <= sizeof bytes; n++) {
    keyed_hash narrow = keyed_narrow(key, bytes, n), wide = keyed_wide(key, bytes, n);
    assert_memory_equal(&narrow, &wide, sizeof narrow);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(copies_that_are_the_same_are_taken),
                                     cmocka_unit_test(a_byte_of_any_tensor_is_told),
                                     cmocka_unit_test(a_byte_of_configuration_and_tokenizer_is_told),
                                     cmocka_unit_test(the_odd_one_of_four_is_told),
                                     cmocka_unit_test(a_byte_of_either_shard_is_told),
                                     cmocka_unit_test(a_byte_of_a_gguf_beside_its_matrices_is_told),
                                     cmocka_unit_test(processors_hash_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
