/* A model's files in any format: their configuration, and their tensors by name. */
#ifndef DT_CHECKPOINT_H
#define DT_CHECKPOINT_H

#include "model/config.h"
#include "model/gguf.h"
#include "model/safetensors.h"

typedef struct {
  const char *path;  /* as it was opened */
  char *keys_path;   /* of the file with the keys */
  cJSON *json;       /* the keys */
  cJSON *generation; /* those of generation_config.json; NULL: there is none */
  st *weights;
  gguf *gguf; /* in the place of weights; NULL: the files are Hugging Face's */
} checkpoint;

/* A folder with config.json and safetensors files, or a GGUF file. Errors name the file, what was found and what was
 * expected. */
dt_status checkpoint_open(const char *path, checkpoint *out, dt_error *err); /* the keys, and: */
dt_status checkpoint_open_tensors(checkpoint *c, dt_error *err);
void checkpoint_close(checkpoint *c); /* views of its tensors are gone afterwards */

keys checkpoint_keys(const checkpoint *c, dt_error *err);

/* The state of a search for tensors. A failure is kept in status and makes later calls do nothing, so that a family's
 * list of tensors reads as a list. */
typedef struct {
  const checkpoint *from;
  const char *prefix; /* before every name of Hugging Face's */
  int layer;          /* the number for "%d" in a name */
  dt_status status;
  dt_error *err;
} finder;

/* The tensor of that name, `hf` in Hugging Face's files and `gguf` in GGUF's; NULL: such files have none. DT_EINPUT
 * says that it is missing, of another shape or of a type not known. */
dt_matrix find_matrix(finder *f, int rows, int cols, const char *hf, const char *gguf);
dt_matrix find_vector(finder *f, int n, const char *hf, const char *gguf);
/* A tensor of n vectors, one behind the other. */
dt_matrix find_vectors(finder *f, int n, int size, const char *hf, const char *gguf);
/* A tensor of n matrices, as one matrix whose rows go [matrix][row]; n * rows fits an int. */
dt_matrix find_matrices(finder *f, int n, int rows, int cols, const char *hf, const char *gguf);
/* The same of one in Hugging Face's files in which they are transposed, and of two that have MXFP4 as `scales` of
 * dt_matrix says. dt_one_of takes a matrix out. */
dt_matrix find_across(finder *f, int n, int rows, int cols, const char *hf);
dt_matrix find_blocks(finder *f, int n, int rows, int cols, const char *blocks, const char *scales);

bool find_is_there(const finder *f, const char *hf, const char *gguf);

/* The rows of a tensor of that name, and its columns (1: a vector); 0: there is none. */
uint64_t find_rows(const finder *f, const char *hf, const char *gguf);
uint64_t find_columns(const finder *f, const char *hf, const char *gguf);

/* Llama 3's stretching of a rotation, which GGUF files have as a tensor: each of the pairs' frequencies is divided by
 * it. */
void find_stretch(finder *f, int pairs, float *inv_freq);

/* All n numbers of a vector of integers (I64, I32) or truths (BOOL). DT_EINPUT as above. */
void find_integers(finder *f, int n, const char *hf, const char *gguf, int64_t *out);

#endif
